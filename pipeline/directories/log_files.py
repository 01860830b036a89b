"""The files that the sources read: on this machine, or copies of directories in an object store.

`Files` tells the two apart by their names: what begins with a scheme of `SCHEMES` goes through
pyarrow's file systems, as range reads. Options of the store stand behind a `?` of the directory's
name, as pyarrow has them (`s3://bucket/data?region=eu-west-1`); credentials are the environment's.
Nothing is ever written.
"""

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from pipeline.errors import BadOption
from storage.env import DirEntry
from storage.errors import DiskError, FileMissing
from storage.posix import PosixFile, PosixFileSystem

if TYPE_CHECKING:
    from pyarrow import fs as pafs

SCHEMES = ("s3", "gs", "abfs", "abfss", "file")
AHEAD_BYTES = 64 * 1024
"""A small read from a store takes so much: headers are asked for one behind the other."""
RANGE_BYTES = 16 * 1024 * 1024
"""A large read from a store: so much pays for its round trip."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SECRET = re.compile(r"(?<=://)[^/@]*:[^/@]*@|\?[^/]*")


class LogFile(Protocol):
    """An open `.log`, for reading."""

    path: str

    def read_at(self, position: int, size: int) -> bytes:
        """The bytes at `position`: fewer than `size` only at the end of the file."""

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`; the count is short only at the end of the file."""

    def size(self) -> int:
        """Length in bytes."""

    def close(self) -> None:
        """Let go of it."""


@runtime_checkable
class ObjectFile(LogFile, Protocol):
    """A `.log` that is an object of a store."""

    identity: int
    """Another one for another object."""


class LogPlace(NamedTuple):
    """A name in an object store: the file system's address, and the path in there."""

    address: str
    path: str


def is_stored(path: str) -> bool:
    """True for a name in an object store; BadOption for a store that is not supported."""
    found = _SCHEME.match(path)
    if found is None:
        return False
    if found[1].lower() not in SCHEMES:
        raise BadOption(
            f"{shown(path)}: there is no store {found[1]}://, only {', '.join(SCHEMES)}"
        )
    return True


def refuse_stores(directories: Iterable[str]) -> None:
    """For those who read through the machine's own file system. BadOption."""
    for each in directories:
        if is_stored(each):
            raise BadOption(
                f"{shown(each)}: this job reads data directories of this machine; archive, "
                "audit-time, latency, replay and sql read copies in an object store as well"
            )


def shown(path: str) -> str:
    """The name without what may be secret in it."""
    return _SECRET.sub("", path)


def place_of(path: str) -> LogPlace:
    """Parses a name into its place. Options follow the directory that the user named, before
    `/`.
    """
    begin, _, behind = path.partition("?")
    options, _, rest = behind.partition("/")
    whole = f"{begin.rstrip('/')}/{rest}" if rest else begin
    scheme, _, inside = whole.partition("://")
    host, _, path_inside = inside.partition("/")
    address = f"{scheme}://{host}/" + (f"?{options}" if options else "")
    return LogPlace(address, path_inside)


class StoredFile:
    """An object of a store, as long as it was when it was opened. Every failure is a DiskError."""

    __slots__ = ("_at", "_block", "_file", "_size", "identity", "path")

    def __init__(self, path: str, file: Any, identity: int) -> None:
        """`file` is pyarrow's, `identity` another one once the object was written again."""
        self.path = path
        self.identity = identity
        self._file = file
        self._size: int = file.size()
        self._at, self._block = 0, b""

    def read_at(self, position: int, size: int) -> bytes:
        """The bytes at `position`; more are read and kept for the next call."""
        begin = position - self._at
        if begin < 0 or begin + size > len(self._block):
            wanted = max(0, min(max(size, AHEAD_BYTES), self._size - position))
            try:
                self._block = bytes(self._file.read_at(wanted, position)) if wanted else b""
            except OSError as error:
                raise _failed(self.path, "read", error) from error
            self._at, begin = position, 0
        return self._block[begin : begin + size]

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`."""
        if position >= self._size:
            return 0
        try:
            self._file.seek(position)
            count: int = self._file.readinto(buffer)
        except OSError as error:
            raise _failed(self.path, "read", error) from error
        return count

    def size(self) -> int:
        """Length in bytes."""
        return self._size

    def close(self) -> None:
        """Let go of it."""
        self._file.close()


class Files(PosixFileSystem):
    """File systems of both kinds, for reading."""

    __slots__ = ()

    def open_log(self, path: str) -> LogFile:
        """Open a file; FileMissing, DiskError."""
        if not is_stored(path):
            return self.open(path, write=False)
        store, inside = _found(path)
        try:
            info = store.get_file_info(inside)
            if not info.is_file:
                raise FileNotFoundError("there is no such object")
            identity = hash((info.mtime_ns, info.size))
            return StoredFile(shown(path), store.open_input_file(inside), identity)
        except OSError as error:
            raise _failed(path, "open", error) from error

    def exists(self, path: str) -> bool:
        """True when there is an object of that name, or objects below it."""
        if not is_stored(path):
            return super().exists(path)
        store, inside = _found(path)
        try:
            return bool(store.get_file_info(inside).type)
        except OSError as error:
            raise _failed(path, "look up", error) from error

    def list_dir(self, path: str) -> list[DirEntry]:
        """Entries one level below a name."""
        if not is_stored(path):
            return super().list_dir(path)
        from pyarrow import fs as pafs

        store, inside = _found(path)
        try:
            found = store.get_file_info(pafs.FileSelector(inside))
        except OSError as error:
            raise _failed(path, "list", error) from error
        return [
            DirEntry(
                each.base_name,
                each.type is pafs.FileType.Directory,
                each.size or 0,
                (each.mtime_ns or 0) // 1_000_000,
            )
            for each in found
        ]

    def read_bytes(self, path: str) -> bytes:
        """The whole file."""
        if not is_stored(path):
            return super().read_bytes(path)
        file = self.open_log(path)
        try:
            return file.read_at(0, file.size())
        finally:
            file.close()


def identity_of(file: LogFile) -> int:
    """A number that is another one when another file has taken the name."""
    if isinstance(file, ObjectFile):
        return file.identity
    assert isinstance(file, PosixFile)
    number = file.fileno()
    assert number is not None
    return os.fstat(number).st_ino


def _found(path: str) -> "tuple[pafs.FileSystem, str]":
    place = place_of(path)
    store, root = _store(place.address)
    return store, f"{root.rstrip('/')}/{place.path}".rstrip("/")


@lru_cache(16)
def _store(address: str) -> "tuple[pafs.FileSystem, str]":
    """A process connects once. BadOption for what the store's options cannot mean."""
    import pyarrow as pa
    from pyarrow import fs as pafs

    try:
        store, root = pafs.FileSystem.from_uri(address)
    except (pa.ArrowException, ValueError) as error:
        raise BadOption(f"{shown(address)}: {error}") from None
    except OSError as error:
        raise _failed(address, "connect", error) from error
    return store, root


def _failed(path: str, operation: str, error: OSError) -> DiskError:
    kind = FileMissing if isinstance(error, FileNotFoundError) else DiskError
    return kind(shown(path), operation, str(error), error.errno or 0)


FILES = Files()
