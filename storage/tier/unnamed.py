"""Segments of a partition that no manifest names: not yet, or not any more."""

from collections.abc import Iterable

from storage.locks import Lock
from storage.tier.manifests.manifest import RemoteSegment


class Unnamed:
    """Used from any thread."""

    def __init__(self) -> None:
        """None."""
        self._gate = Lock()
        self.copies: frozenset[str] = frozenset()
        """`unique` of copies that are under way, or done and not named yet; replaced, not changed.
        """
        self.replaced: tuple[RemoteSegment, ...] = ()
        """Those whose objects may go; likewise."""

    def begin(self, unique: str) -> None:
        """A copy begins."""
        with self._gate:
            self.copies |= {unique}

    def end(self, uniques: Iterable[str]) -> None:
        """Copies are named, or were given up."""
        with self._gate:
            self.copies -= frozenset(uniques)

    def left(self, rows: Iterable[RemoteSegment]) -> None:
        """No manifest names these any longer, or will."""
        with self._gate:
            self.replaced += tuple(rows)

    def take(self) -> tuple[RemoteSegment, ...]:
        """Those whose objects may go, each once."""
        with self._gate:
            taken, self.replaced = self.replaced, ()
            self.copies -= {row.unique for row in taken}
        return taken
