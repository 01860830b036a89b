"""Rounds of stretches: the parts of an archive that become visible at once, and their writing."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.sinks.archive.values import Done, Stream


class ArchiveStretch(NamedTuple):
    """A part of a stream that one worker reads; `work` is what the source reads it by."""

    stream: Stream
    first: int
    until: int
    size_bytes: int
    work: object


@dataclass(slots=True)
class _Round:
    """`left`: how many of its stretches are at work."""

    left: int
    done: list[Done] = field(default_factory=list)


class Rounds:
    """Stretches in rounds of at most so many bytes, of one stretch at the least.

    Iterating hands out the rounds, in order. They may be worked on side by side, and their parts
    be done in any order; they are whole in order.
    """

    def __init__(self, stretches: Sequence[ArchiveStretch], budget_bytes: int) -> None:
        """Nothing is handed out."""
        self._stretches = stretches
        self._budget_bytes = budget_bytes
        self._open: deque[_Round] = deque()
        self._at_work: dict[tuple[str, int], tuple[_Round, int]] = {}

    def __iter__(self) -> Iterator[Sequence[ArchiveStretch]]:
        """Each round, once."""
        found: list[ArchiveStretch] = []
        used = 0
        for stretch in self._stretches:
            if found and used + stretch.size_bytes > self._budget_bytes:
                yield self._begun(found)
                found, used = [], 0
            found.append(stretch)
            used += stretch.size_bytes
        if found:
            yield self._begun(found)

    def take(self, done: Done) -> int:
        """Note that a stretch is written; its size in bytes of log."""
        part, size_bytes = self._at_work.pop((done.key, done.first))
        part.done.append(done)
        part.left -= 1
        return size_bytes

    def whole(self) -> Iterator[Sequence[Done]]:
        """The rounds that are written and whose forerunners are, each once."""
        while self._open and not self._open[0].left:
            yield self._open.popleft().done

    def _begun(self, stretches: Sequence[ArchiveStretch]) -> Sequence[ArchiveStretch]:
        part = _Round(len(stretches))
        self._open.append(part)
        for each in stretches:
            self._at_work[each.stream.key, each.first] = part, each.size_bytes
        return stretches
