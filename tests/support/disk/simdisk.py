"""A disk in memory that is as cruel as disks are allowed to be, and replays from a seed.

What reads see is the page cache. What a power cut leaves is decided by `after_crash(seed)`:
unsynced bytes survive, vanish or tear sector by sector (a length may outlive its bytes, as zeros);
new, renamed and removed names are lost unless their directory was synced, each on its own; a name
in a directory that is itself not durable goes with it. A failed sync drops the unsynced bytes for
good, the cache still shows them, and the next sync says yes: over a kill, too. After the cache is
dropped, reads return what the disk has; bytes written again are unsynced again.

Three ways to find trouble: `crash_at` dies at the N-th mutating call (every later call dies too);
`on_call` is called before each mutating call, and may look at `after_crash` of that moment, so one
run visits every crash point; `inject` makes chosen calls fail.
"""

import errno
import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial

from storage.env import Buffer, Clock, DirEntry, parent_of, replace_file
from storage.errors import DirectoryLocked, DiskError, FileMissing, NoSpace

SECTOR_BYTES = 512
PLENTY_BYTES = 1 << 40


class SimulatedCrash(BaseException):
    """The machine lost its power: no `except Exception` stops it, and later calls die too."""


@dataclass(slots=True)
class FileNode:
    """A file's bytes: as the cache has them, as the disk has them, and the difference."""

    cached: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    # What was not synced, in order: (position, bytes), or (size, None) for a truncation.
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    mtime_ms: int = 0

    def drop_clean(self, position: int) -> None:
        """Reads from there on tell what the disk has, and what is to be written to it yet.

        The length is the inode's, which stays in memory: where the disk has nothing, zeros are.
        """
        content = bytearray(self.durable)
        for change in self.pending:
            apply(content, change)
        apply(content, (len(self.cached), None))
        self.cached[position:] = content[position:]

    def settle(self) -> None:
        """Everything reached the disk."""
        for change in self.pending:
            apply(self.durable, change)
        self.pending.clear()


@dataclass(slots=True)
class DirNode:
    """A directory's names, twice, and the changes between: (token, verb, name, node, old name)."""

    entries: dict[str, "Node"] = field(default_factory=dict)
    durable: dict[str, "Node"] = field(default_factory=dict)
    pending: list["NameChange"] = field(default_factory=list)
    mtime_ms: int = 0


Node = FileNode | DirNode


@dataclass(frozen=True, slots=True)
class NameChange:
    """`name` leads to `node` from now on (None: to nothing); `old_name` no longer does."""

    token: int  # both halves of a move between directories share it: kept or lost together
    name: str
    node: Node | None
    old_name: str | None = None

    def apply(self, names: dict[str, Node]) -> None:
        """Change the names, as far as they still are what the change began with."""
        if self.old_name is not None and names.get(self.old_name) is self.node:
            del names[self.old_name]
        if self.node is None:
            names.pop(self.name, None)
        else:
            names[self.name] = self.node


def apply(content: bytearray, change: tuple[int, bytes | None]) -> None:
    """Write into, or truncate, a file's content; gaps fill with zeros."""
    position, data = change
    end = position if data is None else position + len(data)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if data is None:
        del content[position:]
    else:
        content[position:end] = data


class ShortWriteError(DiskError):
    """A part was written, then the disk failed."""


@dataclass(slots=True)
class Fault:
    """Calls of one kind that will fail: `skip` of them pass first, then `times` fail."""

    operation: str
    path_part: str
    error: str
    skip: int
    times: int


class SimFileSystem:
    """A `FileSystem` in memory. `capacity_bytes` is the size of the disk."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        capacity_bytes: int | None = None,
        drops_cache: bool = True,
    ) -> None:
        """`drops_cache`: whether this kind of file system drops cached bytes when asked to."""
        self.calls = 0
        self.drops_cache = drops_cache
        self.dropped: dict[str, int] = {}  # from which position on the cache was dropped, by path
        self.crash_at: int | None = None
        self.on_call: Callable[[int], None] | None = None
        self.on_mutation: Callable[[str, str], None] | None = None  # gets the call and its path
        self.fail_at: tuple[int, str] | None = None  # that call fails: eio, enospc, short
        self.fail_at_each: set[int] = set()  # those calls fail: eio
        self.cold_paths: set[str] = set()  # what `read_into_if_cached` does not find in the cache
        self.capacity_bytes = capacity_bytes
        self._clock = clock
        self._root = DirNode()
        self._faults: list[Fault] = []
        self._locked: set[str] = set()
        self._used = 0
        self._is_dead = False

    # --- what tests do to the disk ---

    def inject(
        self, operation: str, *, path: str = "", error: str = "eio", skip: int = 0, times: int = 1
    ) -> None:
        """Let calls fail: write, sync, truncate, open, rename, remove, "make directory", ..."""
        self._faults.append(Fault(operation, path, error, skip, times))

    def after_crash(self, seed: int) -> "SimFileSystem":
        """State of the disk after a power cut now, by one roll of the dice. Changes nothing
        here.
        """
        return self._successor(Survival(random.Random(seed)))

    def after_kill(self) -> "SimFileSystem":
        """State of the disk after a kill now: the cache, all of it, no more durable than before."""
        return self._successor(Survival(None))

    def fingerprint(self) -> int:
        """A number that tells what readers see here: names and bytes, without times."""
        return hash(_content_of(self._root))

    def durable_bytes(self, path: str) -> bytes:
        """Bytes of a file that every power cut leaves, as far as its own directory is concerned."""
        parent, name = self._parent(path, "look at")
        node = parent.durable.get(name)
        return bytes(node.durable) if isinstance(node, FileNode) else b""

    def _successor(self, survival: "Survival") -> "SimFileSystem":
        successor = SimFileSystem(
            clock=self._clock, capacity_bytes=self.capacity_bytes, drops_cache=self.drops_cache
        )
        root = survival.copy(self._root)
        assert isinstance(root, DirNode)
        successor._root = root
        successor._used = survival.bytes_kept
        return successor

    # --- the port ---

    def open(self, path: str, *, create: bool = False, write: bool = True) -> "SimFile":
        parent, name = self._parent(path, "open")
        node = parent.entries.get(name)
        if node is None:
            if not create:
                raise FileMissing(path, "open", "no such file", errno.ENOENT)
            node = FileNode(mtime_ms=self._now())
            new = node
            self._mutate("create", path, lambda: self._change_name(parent, name, new))
        if isinstance(node, DirNode):
            raise DiskError(path, "open", "is a directory", errno.EISDIR)
        return SimFile(self, path, node, may_write=write)

    def is_open_to_all(self, path: str) -> bool:
        return False

    def exists(self, path: str) -> bool:
        self._check_alive()
        return self._find(path) is not None

    def list_dir(self, path: str) -> list[DirEntry]:
        return [
            DirEntry(
                name,
                isinstance(node, DirNode),
                len(node.cached) if isinstance(node, FileNode) else 4096,
                node.mtime_ms,
            )
            for name, node in self._dir(path, "list").entries.items()
        ]

    def make_dir(self, path: str) -> None:
        self._check_alive()
        here = self._root
        for name in parts_of(path):
            node = here.entries.get(name)
            if node is None:
                node = DirNode(mtime_ms=self._now())
                self._mutate("make directory", path, partial(self._change_name, here, name, node))
            if not isinstance(node, DirNode):
                raise DiskError(path, "make directory", "a file is in the way", errno.EEXIST)
            here = node

    def rename(self, source: str, target: str) -> None:
        old_parent, old_name = self._parent(source, "rename")
        new_parent, new_name = self._parent(target, "rename")
        node = old_parent.entries.get(old_name)
        if node is None:
            raise FileMissing(source, "rename", "no such file", errno.ENOENT)
        if isinstance(new_parent.entries.get(new_name), DirNode):
            raise DiskError(source, "rename", "a directory is in the way", errno.EISDIR)

        def move() -> None:
            replaced = new_parent.entries.get(new_name)
            if isinstance(replaced, FileNode) and replaced is not node:
                self._used -= len(replaced.cached)
            if old_parent is new_parent:
                self._change_name(new_parent, new_name, node, old_name)
            else:
                self._change_name(new_parent, new_name, node)
                self._change_name(old_parent, old_name, None)

        self._mutate("rename", source, move)

    def remove(self, path: str) -> None:
        parent, name = self._parent(path, "remove")
        node = parent.entries.get(name)
        if node is None:
            raise FileMissing(path, "remove", "no such file", errno.ENOENT)
        if isinstance(node, DirNode):
            raise DiskError(path, "remove", "is a directory", errno.EISDIR)
        size = len(node.cached)

        def unlink() -> None:
            self._used -= size
            self._change_name(parent, name, None)

        self._mutate("remove", path, unlink)

    def remove_tree(self, path: str) -> None:
        self._check_alive()
        node = self._find(path)
        if node is None:
            return
        if isinstance(node, FileNode):
            raise DiskError(path, "remove", "not a directory", errno.ENOTDIR)
        for name, child in list(node.entries.items()):
            if isinstance(child, DirNode):
                self.remove_tree(f"{path}/{name}")
            else:
                self.remove(f"{path}/{name}")
        parent, name = self._parent(path, "remove")
        self._mutate("remove", path, lambda: self._change_name(parent, name, None))

    def sync_dir(self, path: str) -> None:
        node = self._dir(path, "sync directory")
        self._mutate("sync directory", path, lambda: self._settle_names(node), is_sync=True)

    def free_bytes(self, path: str) -> int:
        self._check_alive()
        if self.capacity_bytes is None:
            return PLENTY_BYTES
        return max(0, self.capacity_bytes - self._used)

    def disk_bytes(self, path: str) -> int:
        self._check_alive()
        return PLENTY_BYTES if self.capacity_bytes is None else self.capacity_bytes

    def lock(self, path: str) -> "SimLock":
        if path in self._locked:
            raise DirectoryLocked(path, "another process holds the lock")
        self.open(path, create=True).close()
        self._locked.add(path)
        return SimLock(self._locked, path)

    def read_bytes(self, path: str) -> bytes:
        file = self.open(path, write=False)
        return file.read_at(0, file.size())

    def read_text(self, path: str) -> str:
        return self.read_bytes(path).decode("utf-8", "replace")

    def write_atomically(self, path: str, data: bytes) -> None:
        replace_file(self, path, data)

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        self._check_alive()
        node = self._find(path)
        if node is None:
            raise FileMissing(path, "set modification time", "no such file", errno.ENOENT)
        node.mtime_ms = mtime_ms

    # --- inside ---

    def _find(self, path: str) -> Node | None:
        node: Node | None = self._root
        for name in parts_of(path):
            if not isinstance(node, DirNode):
                return None
            node = node.entries.get(name)
        return node

    def _dir(self, path: str, operation: str) -> DirNode:
        self._check_alive()
        node = self._find(path)
        if node is None:
            raise FileMissing(path, operation, "no such directory", errno.ENOENT)
        if isinstance(node, FileNode):
            raise DiskError(path, operation, "not a directory", errno.ENOTDIR)
        return node

    def _parent(self, path: str, operation: str) -> tuple[DirNode, str]:
        return self._dir(parent_of(path), operation), parts_of(path)[-1]

    def _now(self) -> int:
        return 1_700_000_000_000 + self.calls if self._clock is None else self._clock.now_ms()

    def _check_alive(self) -> None:
        if self._is_dead:
            raise SimulatedCrash

    def _change_name(
        self, parent: DirNode, name: str, node: Node | None, old_name: str | None = None
    ) -> None:
        change = NameChange(self.calls, name, node, old_name)
        change.apply(parent.entries)
        parent.pending.append(change)

    def _settle_names(self, node: DirNode) -> None:
        for change in node.pending:
            change.apply(node.durable)
        node.pending.clear()

    def _mutate(
        self, operation: str, path: str, act: Callable[[], None], *, is_sync: bool = False
    ) -> None:
        """Count the call, then let it happen, fail or be the last one."""
        self._check_alive()
        if self.on_call is not None:
            self.on_call(self.calls)
        if self.on_mutation is not None:
            self.on_mutation(operation, path)
        self.calls += 1
        is_last = self.crash_at == self.calls
        if is_last and is_sync:
            self._is_dead = True
            raise SimulatedCrash
        self._maybe_fail(operation, path)
        act()
        if is_last:
            self._is_dead = True
            raise SimulatedCrash

    def _maybe_fail(self, operation: str, path: str) -> None:
        if self.fail_at is not None and self.fail_at[0] == self.calls:
            raise _error_of(self.fail_at[1], operation, path)
        if self.calls in self.fail_at_each:
            raise _error_of("eio", operation, path)
        for fault in self._faults:
            if fault.operation != operation or fault.path_part not in path or not fault.times:
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            fault.times -= 1
            raise _error_of(fault.error, operation, path)


class SimFile:
    """A `File` on the simulated disk."""

    __slots__ = ("_fs", "_is_open", "_may_write", "_node", "path")

    def __init__(self, fs: SimFileSystem, path: str, node: FileNode, *, may_write: bool) -> None:
        self.path = path
        self._fs = fs
        self._node = node
        self._may_write = may_write
        self._is_open = True

    def write_at(self, position: int, data: Buffer) -> None:
        self._check_writable("write")
        copy = bytes(data)
        try:
            self._fs._mutate("write", self.path, lambda: self._store(position, copy))
        except (NoSpace, ShortWriteError):  # as disks do: a part was written before they said so
            self._apply((position, copy[: len(copy) // 2]))
            raise

    def write_parts_at(self, position: int, parts: Sequence[Buffer]) -> None:
        self.write_at(position, b"".join(parts))

    def read_at(self, position: int, size: int) -> bytes:
        self._check_open("read")
        return bytes(self._node.cached[position : position + size])

    def read_into(self, position: int, buffer: memoryview) -> int:
        data = self.read_at(position, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read_into_if_cached(self, position: int, buffer: memoryview) -> int | None:
        return None if self.path in self._fs.cold_paths else self.read_into(position, buffer)

    def size(self) -> int:
        self._check_open("stat")
        return len(self._node.cached)

    def truncate(self, size: int) -> None:
        self._check_writable("truncate")
        self._fs._mutate("truncate", self.path, lambda: self._apply((size, None)))

    def reserve(self, position: int, size: int) -> None:
        """Room is never reserved here: what it would be for is the speed of a real disk."""

    def let_go(self, position: int, size: int) -> None:
        """Advice that this disk does not take."""

    def drop_cache(self, position: int) -> bool:
        self._check_open("drop the cache")
        if not self._fs.drops_cache:
            return False
        self._fs.dropped[self.path] = position
        self._node.drop_clean(position)
        return True

    def sync(self) -> None:
        self._check_open("sync")
        try:
            self._fs._mutate("sync", self.path, self._node.settle, is_sync=True)
        except DiskError:
            self._node.pending.clear()  # lost, though the cache still shows them
            raise

    def fileno(self) -> int | None:
        return None

    def close(self) -> None:
        self._is_open = False

    def _check_open(self, operation: str) -> None:
        self._fs._check_alive()
        if not self._is_open:
            raise DiskError(self.path, operation, "the file is closed", errno.EBADF)

    def _check_writable(self, operation: str) -> None:
        self._check_open(operation)
        if not self._may_write:
            raise DiskError(self.path, operation, "opened for reading", errno.EBADF)

    def _store(self, position: int, data: bytes) -> None:
        capacity = self._fs.capacity_bytes
        if capacity is not None:
            growth = max(0, position + len(data) - len(self._node.cached))
            if self._fs._used + growth > capacity:
                raise NoSpace(self.path, "write", "the disk is full", errno.ENOSPC)
        self._apply((position, data))

    def _apply(self, change: tuple[int, bytes | None]) -> None:
        node = self._node
        before = len(node.cached)
        apply(node.cached, change)
        node.pending.append(change)
        node.mtime_ms = self._fs._now()
        self._fs._used += len(node.cached) - before


class SimLock:
    """A taken lock."""

    def __init__(self, held: set[str], path: str) -> None:
        self._held, self._path = held, path

    def release(self) -> None:
        self._held.discard(self._path)


class Survival:
    """Copies a tree as it is after a crash (with dice), or after a kill (without)."""

    def __init__(self, dice: random.Random | None) -> None:
        self.bytes_kept = 0
        self._dice = dice
        self._copies: dict[int, Node] = {}
        self._fates: dict[int, bool] = {}  # by token of a change of names

    def copy(self, node: Node) -> Node:
        """The node as it survives; names that lead to the same node still do."""
        known = self._copies.get(id(node))
        if known is not None:
            return known
        if isinstance(node, DirNode):
            return self._copy_dir(node)
        copy = self._kept_file(node) if self._dice is None else self._torn_file(node, self._dice)
        self.bytes_kept += len(copy.cached)
        self._copies[id(node)] = copy
        return copy

    def _copy_dir(self, node: DirNode) -> DirNode:
        copy = DirNode(mtime_ms=node.mtime_ms)
        self._copies[id(node)] = copy
        if self._dice is None:
            copy.entries = {name: self.copy(child) for name, child in node.entries.items()}
            copy.durable = {name: self.copy(child) for name, child in node.durable.items()}
            copy.pending = [
                NameChange(c.token, c.name, self.copy(c.node) if c.node else None, c.old_name)
                for c in node.pending
            ]
            return copy
        names = dict(node.durable)
        keep = self._keep_rule(len(node.pending), self._dice)
        for index, change in enumerate(node.pending):
            if self._fates.setdefault(change.token, keep(index)):
                change.apply(names)
        copy.entries = {name: self.copy(child) for name, child in names.items()}
        copy.durable = dict(copy.entries)
        return copy

    def _kept_file(self, node: FileNode) -> FileNode:
        return FileNode(
            bytearray(node.cached), bytearray(node.durable), list(node.pending), node.mtime_ms
        )

    def _torn_file(self, node: FileNode, dice: random.Random) -> FileNode:
        content = bytearray(node.durable)
        keep = self._keep_rule(len(node.pending), dice)
        for index, change in enumerate(node.pending):
            position, data = change
            if data is None or dice.random() < 0.5:
                if keep(index):
                    apply(content, change)
                continue
            for begin, sector in sectors(position, data):
                if dice.random() < 0.5:
                    apply(content, (begin, sector))
        if len(content) < len(node.cached) and dice.random() < 0.1:
            content.extend(bytes(len(node.cached) - len(content)))  # the length outlived its bytes
        return FileNode(content, bytearray(content), [], node.mtime_ms)

    def _keep_rule(self, count: int, dice: random.Random) -> Callable[[int], bool]:
        match dice.randrange(4):
            case 0:
                return lambda index: False
            case 1:
                return lambda index: True
            case 2:
                first_lost = dice.randint(0, count)
                return lambda index: index < first_lost
            case _:
                return lambda index: dice.random() < 0.5


def _error_of(error: str, operation: str, path: str) -> DiskError:
    match error:
        case "enospc":
            return NoSpace(path, operation, "injected", errno.ENOSPC)
        case "short":
            return ShortWriteError(path, operation, "injected", errno.EIO)
    return DiskError(path, operation, "injected", errno.EIO)


def _content_of(node: Node) -> Hashable:
    if isinstance(node, FileNode):
        return bytes(node.cached)
    return tuple((name, _content_of(child)) for name, child in sorted(node.entries.items()))


def parts_of(path: str) -> list[str]:
    """The names along a path."""
    return [name for name in path.split("/") if name not in ("", ".")]


def sectors(position: int, data: bytes) -> list[tuple[int, bytes]]:
    """The pieces of a write that reach the disk whole or not at all, with their positions."""
    pieces = []
    begin = 0
    while begin < len(data):
        end = min(len(data), begin + SECTOR_BYTES - (position + begin) % SECTOR_BYTES)
        pieces.append((position + begin, data[begin:end]))
        begin = end
    return pieces
