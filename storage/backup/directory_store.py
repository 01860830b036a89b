"""An object store that is a directory: for a back-up to a disk, and restores from one.

Every object is a file of its key, made durable before its name is: written into `.incoming`,
synced, renamed. One process at a time writes, and has the lock for that; what an earlier one left
in `.incoming` goes when it begins. Reading takes no lock.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from storage.env import Buffer, DirEntry, FileSystem, Lock, make_dir_durably, parent_of
from storage.errors import DiskError, FileMissing
from storage.files.layout import LOCK_FILE
from storage.locks import Lock as ThreadLock
from storage.tier.names import CARD, CLUSTER, TOPICS
from storage.tier.port import (
    MAX_GET_BYTES,
    ObjectExists,
    ObjectFacts,
    ObjectMissing,
    ObjectTooLarge,
    StoreError,
)

INCOMING = ".incoming"
PIECE_BYTES = 512 * 1024
_OWN = frozenset((INCOMING, LOCK_FILE, "lost+found"))
_BEGINNINGS = (CARD, CLUSTER.rstrip("/"), TOPICS.rstrip("/"))


class NoPlace(DiskError):  # noqa: N818 - what was found
    """The directory is not there, or has other files than a back-up's."""


class DirectoryStore:
    """The `ObjectStore` of one directory. Errors of the disk come as they are."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        """For reading. NoPlace unless there is a directory of a back-up, or an empty one."""
        self._fs = fs
        self._path = path
        self._lock: Lock | None = None
        self._gate = ThreadLock()
        if not fs.exists(path):
            raise NoPlace(path, "open", "there is no such directory")
        self._check()

    @classmethod
    def for_writing(cls, fs: FileSystem, path: str) -> "DirectoryStore":
        """The same, made if absent, and locked until `close`. DirectoryLocked, NoPlace."""
        make_dir_durably(fs, path)
        store = cls(fs, path)
        store._lock = fs.lock(f"{path}/{LOCK_FILE}")
        try:
            fs.remove_tree(f"{path}/{INCOMING}")
        except DiskError:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Lets others write."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _check(self) -> None:
        names = {each.name for each in self._fs.list_dir(self._path)} - _OWN
        if names and not names.issuperset((CARD,)):
            others = sorted(names.difference(_BEGINNINGS))
            if others:
                raise NoPlace(self._path, "open", f"it is no back-up's: there is {others[0]}")

    # --- the port ---

    def put_new(self, key: str, data: Buffer) -> None:
        """As the port has it."""
        with self._gate:
            if self._fs.exists(self._file(key)):
                raise ObjectExists(key, "put_new", "there is a file of this name")
            self._put(key, iter((data,)))

    def put_file(self, key: str, parts: Iterator[Buffer], size_bytes: int) -> None:
        """As the port has it."""
        with self._gate:
            self._put(key, _exactly(key, parts, size_bytes))

    def _put(self, key: str, parts: Iterator[Buffer]) -> None:
        target, incoming = self._file(key), f"{self._path}/{INCOMING}"
        make_dir_durably(self._fs, parent_of(target))
        self._fs.make_dir(incoming)
        temporary = f"{incoming}/{key.rpartition('/')[2]}"
        try:
            self._write(temporary, parts)
            self._fs.rename(temporary, target)
        except BaseException:
            with suppress(DiskError):
                self._fs.remove(temporary)
            raise
        self._fs.sync_dir(parent_of(target))

    def _write(self, path: str, parts: Iterator[Buffer]) -> None:
        file = self._fs.open(path, create=True)
        try:
            file.truncate(0)
            position = 0
            for part in parts:
                file.write_at(position, part)
                position += len(part)
            file.sync()
        finally:
            file.close()

    def get(self, key: str) -> bytes:
        """As the port has it."""
        return self._read(key, 0, None)

    def get_range(self, key: str, position: int, size: int) -> bytes:
        """As the port has it."""
        return self._read(key, position, size)

    def pieces(self, key: str, position: int, size: int) -> Iterator[Buffer]:
        """As the port has it."""
        for at in range(position, position + size, PIECE_BYTES):
            yield self._read(key, at, min(PIECE_BYTES, position + size - at))

    def _read(self, key: str, position: int, size: int | None) -> bytes:
        try:
            file = self._fs.open(self._file(key), write=False)
        except FileMissing as error:
            raise ObjectMissing(key, "get", "there is no such file") from error
        try:
            whole = file.size() if size is None else size
            if whole > MAX_GET_BYTES:
                raise ObjectTooLarge(key, "get", f"it has {whole} bytes")
            return file.read_at(position, whole)
        finally:
            file.close()

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectFacts]:
        """As the port has it, folder by folder."""
        found = self._below(prefix)
        last = tuple(after.split("/")) if after else ()
        return (each for each in found if tuple(each.key.split("/")) > last)

    def _below(self, prefix: str) -> Iterator[ObjectFacts]:
        try:
            entries = self._fs.list_dir(f"{self._path}/{prefix}".rstrip("/"))
        except FileMissing:
            return
        for each in sorted(entries, key=_name_of):
            if not prefix and each.name in _OWN:
                continue
            if each.is_dir:
                yield from self._below(f"{prefix}{each.name}/")
            else:
                yield ObjectFacts(f"{prefix}{each.name}", each.size_bytes, each.mtime_ms)

    def delete(self, keys: Sequence[str]) -> None:
        """As the port has it."""
        for key in keys:
            with suppress(FileMissing):
                self._fs.remove(self._file(key))
        for folder in {parent_of(self._file(key)) for key in keys}:
            with suppress(FileMissing):
                self._fs.sync_dir(folder)

    def _file(self, key: str) -> str:
        return f"{self._path}/{key}"


def _name_of(entry: DirEntry) -> str:
    return entry.name


def _exactly(key: str, parts: Iterator[Buffer], size_bytes: int) -> Iterator[Buffer]:
    seen = 0
    for part in parts:
        seen += len(part)
        yield part
    if seen != size_bytes:
        raise StoreError(key, "put_file", f"its parts have {seen} bytes, not {size_bytes}")
