"""A store in which a manifest is put only after the files that were read were looked at again."""

from collections.abc import Callable, Iterator, Sequence

from storage.backup.still_file import DirectoryChanged
from storage.env import Buffer
from storage.tier.port import ObjectFacts, ObjectStore


class CheckedStore:
    """The `ObjectStore` of another one, for one log's copy."""

    def __init__(self, store: ObjectStore, is_changed: Callable[[], bool]) -> None:
        """`is_changed`: whether bytes that were copied may be of two files."""
        self._store = store
        self._is_changed = is_changed

    def put_new(self, key: str, data: Buffer) -> None:
        """As the port has it. DirectoryChanged: nothing was asked."""
        if self._is_changed():
            raise DirectoryChanged(key, "copy", "a file was replaced while it was read")
        self._store.put_new(key, data)

    def put_file(self, key: str, parts: Iterator[Buffer], size_bytes: int) -> None:
        """As the port has it."""
        self._store.put_file(key, parts, size_bytes)

    def get(self, key: str) -> bytes:
        """As the port has it."""
        return self._store.get(key)

    def get_range(self, key: str, position: int, size: int) -> bytes:
        """As the port has it."""
        return self._store.get_range(key, position, size)

    def pieces(self, key: str, position: int, size: int) -> Iterator[Buffer]:
        """As the port has it."""
        return self._store.pieces(key, position, size)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectFacts]:
        """As the port has it."""
        return self._store.list(prefix, after=after)

    def delete(self, keys: Sequence[str]) -> None:
        """As the port has it."""
        self._store.delete(keys)
