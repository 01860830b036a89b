"""A partition's directory as it was at one moment, while a broker may be at work in it.

Names and sizes are those of two looks that agree. Bytes are read from the files when they are
asked for: nothing below the offset up to which a log was synced ever changes in place. What is
written goes into memory, so a log can be opened here as a start opens it (unfinished swaps, torn
tails and all), and the directory stays untouched: it may be mounted for reading only.

A name that is gone, or has become another file's, is no missing file, which loading would make
again, but `DirectoryChanged`: whoever reads looks again.
"""

from collections.abc import Iterable, Mapping
from typing import NoReturn

from storage.backup.still_file import DirectoryChanged, StillFile, StillNode
from storage.env import DirEntry, File, FileSystem, Lock, replace_file
from storage.errors import DiskError, FileMissing, NoSpace
from storage.files.layout import CLEANED, DELETED, LOG, SWAP, parse_segment_name

LOOKS = 100
"""Looks at names that differ from one to the next, at most."""
MEMORY_BYTES = 256 * 1024 * 1024
"""Most bytes that are written into memory: indexes of one segment, and small files."""

Names = Mapping[str, DirEntry]


def look(fs: FileSystem, path: str) -> Names:
    """The files of a partition's directory, of two looks in a row that saw the same names.

    One alone may miss a file that is renamed meanwhile. FileMissing when there is no directory;
    DirectoryChanged when the names never rest; DiskError.
    """
    before = _files(fs, path)
    for _ in range(LOOKS):
        found = _files(fs, path)
        if found.keys() == before.keys():
            return found
        before = found
    raise DirectoryChanged(path, "look", "its files come and go all the time")


def _files(fs: FileSystem, path: str) -> Names:
    return {each.name: each for each in fs.list_dir(path) if not each.is_dir}


def is_replaced(before: Names, now: Names, clean_end: int) -> bool:
    """True when a `.log` of before is another file now, or went from between others.

    Those at the begin may have gone: retention takes the oldest, and their names never return. The
    last one may have grown, and ended since; then compaction may have been there, as its traces
    say, or `clean_end`, the end of the clean part by the directory's checkpoint of now.
    """
    logs = sorted(name for name in before if is_log(name))
    staying = [name for name in logs if name in now]
    if staying != logs[len(logs) - len(staying) :]:
        return True
    if not staying:
        return False
    *closed, last = staying
    if any(_identity(now[name]) != _identity(before[name]) for name in closed):
        return True
    (base_offset,) = logs_by_base((last,))
    has_ended = any(is_log(name) and name > last for name in now)
    return now[last].size_bytes < before[last].size_bytes or (
        has_ended and (clean_end > base_offset or _has_traces_from(now, last))
    )


def has_traces(names: Names) -> bool:
    """True when files are left that compaction makes, or has replaced.

    Until these go a checkpoint says that it has been there. What retention has renamed is before
    all that stays.
    """
    first = min((name for name in names if is_log(name)), default=None)
    return first is not None and _has_traces_from(names, first)


def _has_traces_from(names: Names, first: str) -> bool:
    """As `has_traces`, of segments from that of a `.log` on."""
    return any(
        name >= first and name.endswith((LOG + SWAP, LOG + CLEANED, LOG + DELETED))
        for name in names
    )


def is_log(name: str) -> bool:
    """True for the name of a `.log`."""
    parsed = parse_segment_name(name)
    return parsed is not None and parsed.suffix == LOG


def logs_by_base(names: Iterable[str]) -> dict[int, str]:
    """Names of the `.log` files among these, by base offset."""
    parsed = ((name, parse_segment_name(name)) for name in names)
    return {
        each.base_offset: name for name, each in parsed if each is not None and each.suffix == LOG
    }


def _identity(entry: DirEntry) -> tuple[int, int]:
    return entry.size_bytes, entry.mtime_ms


class StillDirectory:
    """A `storage.env.FileSystem` of one partition's directory. One thread at a time."""

    def __init__(self, fs: FileSystem, path: str, names: Names, without: frozenset[str]) -> None:
        """`names`: as `look` gave them; `without`: those that count as not there."""
        self._fs = fs
        self._path = path
        self._in_memory = 0
        self._nodes: dict[str, StillNode] = {}
        for name, entry in names.items():
            if name not in without:
                self._take(f"{path}/{name}", entry)

    def _take(self, path: str, entry: DirEntry) -> None:
        """Files of segments stay where they are; small ones, which are replaced, are read now."""
        node = StillNode(path, entry.size_bytes, entry.mtime_ms)
        if parse_segment_name(entry.name) is None:
            try:
                node.data = bytearray(self._fs.read_bytes(path))
            except FileMissing:
                return
            self._charge(path, len(node.data))
        self._nodes[entry.name] = node

    def open(self, path: str, *, create: bool = False, write: bool = True) -> File:  # noqa: ARG002
        """The file; a new one is in memory. FileMissing, DirectoryChanged, DiskError."""
        node = self._nodes.get(self._name(path))
        if node is None:
            if not create:
                raise FileMissing(path, "open", "no such file")
            node = self._nodes[self._name(path)] = StillNode("", 0, 0)
        source = self._fs.open(self._source(node), write=False) if node.data is None else None
        return StillFile(path, node, source, self._charge)

    def _source(self, node: StillNode) -> str:
        if not self._fs.exists(node.source):
            raise DirectoryChanged(node.source, "open", "it is gone")
        return node.source

    def _charge(self, path: str, size: int) -> None:
        if self._in_memory + size > MEMORY_BYTES:
            raise NoSpace(path, "write", f"a copy in memory has at most {MEMORY_BYTES} bytes")
        self._in_memory += max(size, 0)

    def read_bytes(self, path: str) -> bytes:
        """The whole file. As `open`."""
        file = self.open(path, write=False)
        try:
            return file.read_at(0, file.size())
        finally:
            file.close()

    def read_text(self, path: str) -> str:
        """The whole file as UTF-8, as the port has it."""
        return self.read_bytes(path).decode("utf-8", "replace")

    def exists(self, path: str) -> bool:
        """True when the directory had the file."""
        return path == self._path or self._name(path) in self._nodes

    def is_open_to_all(self, path: str) -> bool:
        """As of the directory itself."""
        return self._fs.is_open_to_all(path)

    def list_dir(self, path: str) -> list[DirEntry]:
        """Names and sizes of the moment, with what was changed in memory."""
        assert path == self._path, path
        return [
            DirEntry(name, is_dir=False, size_bytes=node.size(), mtime_ms=node.mtime_ms)
            for name, node in self._nodes.items()
        ]

    def rename(self, source: str, target: str) -> None:
        """In memory."""
        node = self._nodes.pop(self._name(source), None)
        if node is None:
            raise FileMissing(source, "rename", "no such file")
        self._nodes[self._name(target)] = node

    def remove(self, path: str) -> None:
        """In memory."""
        if self._nodes.pop(self._name(path), None) is None:
            raise FileMissing(path, "remove", "no such file")

    def sync_dir(self, path: str) -> None:
        """Nothing to keep."""

    def write_atomically(self, path: str, data: bytes) -> None:
        """In memory."""
        replace_file(self, path, data)

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        """In memory."""
        self._nodes[self._name(path)].mtime_ms = mtime_ms

    def free_bytes(self, path: str) -> int:
        """As of the directory itself."""
        return self._fs.free_bytes(path)

    def disk_bytes(self, path: str) -> int:
        """As of the directory itself."""
        return self._fs.disk_bytes(path)

    def make_dir(self, path: str) -> None:
        """Refused."""
        self._refuse(path)

    def remove_tree(self, path: str) -> None:
        """Refused."""
        self._refuse(path)

    def lock(self, path: str) -> Lock:
        """Refused."""
        self._refuse(path)

    def _refuse(self, path: str) -> NoReturn:
        raise DiskError(path, "write", "it is a picture of a partition's files")

    def _name(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        assert folder == self._path, path
        return name
