"""The real world behind the ports: the only module of storage that calls the operating system.

Files are written with the pwrite family only, in loops, because a full disk gives a short write
first and ENOSPC on the next call. Directories are made 0700, files 0600. Every failure leaves
here as a `DiskError` with path and operation; an absent name as `FileMissing`, a full disk or
quota as `NoSpace`.
"""

import contextlib
import errno
import fcntl
import functools
import os
import stat as stat_bits
import time
import uuid
from collections.abc import Callable, Sequence

from storage.env import Buffer, DirEntry, Env, parent_of, replace_file
from storage.errors import DirectoryLocked, DiskError, FileMissing, NoSpace

_KEEP_SIZE = 1  # of fallocate(2)
_LARGEST_PAGE = 2 * 1024 * 1024  # that file systems keep in the page cache, as one
_MAPPED_AT_ONCE = 1 << 30
_MAX_PARTS = 512  # well below every system's limit for one vectored write


def disk_error(path: str, operation: str, error: OSError) -> DiskError:
    """The storage error that says what `error` means."""
    number = error.errno or 0
    text = error.strerror or str(error)
    if number in (errno.ENOSPC, errno.EDQUOT):
        return NoSpace(path, operation, text, number)
    if number == errno.ENOENT:
        return FileMissing(path, operation, text, number)
    return DiskError(path, operation, text, number)


@functools.cache
def _fallocate() -> Callable[[int, int, int, int], object]:
    """The system's call, which Python's library lacks; one that does nothing elsewhere."""
    import ctypes  # needed once a log is busy, not at start

    call = getattr(ctypes.CDLL(None), "fallocate", None)
    if call is None:
        return lambda *_: None
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return call  # type: ignore[no-any-return]


def _is_any_cached(fd: int, begin: int, end: int) -> bool:
    """True when a page of [begin, end) is in the page cache; `begin` begins a page.

    OSError, ValueError where the file cannot be mapped, AttributeError where there is no mincore.
    """
    import ctypes  # needed after an unclean stop only
    import mmap

    mincore = ctypes.CDLL(None).mincore
    mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    for at in range(begin, end, _MAPPED_AT_ONCE):
        size = min(_MAPPED_AT_ONCE, end - at)
        pages = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
        with mmap.mmap(fd, size, access=mmap.ACCESS_COPY, offset=at) as mapped:
            first = ctypes.c_char.from_buffer(mapped)
            failed = mincore(ctypes.addressof(first), size, pages)
            del first  # else the map could not be closed
        if failed or pages.raw.strip(b"\0"):
            return True
    return False


class PosixFile:
    """An open file by its descriptor."""

    __slots__ = ("_can_ask_cache", "_fd", "path")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd
        # Whether the file system answers for cached bytes only; False after its first refusal.
        self._can_ask_cache = hasattr(os, "RWF_NOWAIT")

    def write_at(self, position: int, data: Buffer) -> None:
        try:
            written = os.pwrite(self._fd, data, position)
            if written != len(data):
                self._write_rest(position + written, memoryview(data)[written:])
        except OSError as error:
            raise disk_error(self.path, "write", error) from error

    def write_parts_at(self, position: int, parts: Sequence[Buffer]) -> None:
        try:
            for first in range(0, len(parts), _MAX_PARTS):
                position = self._write_some(position, parts[first : first + _MAX_PARTS])
        except OSError as error:
            raise disk_error(self.path, "write", error) from error

    def _write_some(self, position: int, parts: Sequence[Buffer]) -> int:
        written = os.pwritev(self._fd, parts, position)
        for part in parts:
            if written < len(part):
                self._write_rest(position + written, memoryview(part)[written:])
                written = len(part)
            position += len(part)
            written -= len(part)
        return position

    def _write_rest(self, position: int, rest: memoryview) -> None:
        while rest:
            written = os.pwrite(self._fd, rest, position)
            if not written:
                raise OSError(errno.EIO, "nothing was written")
            position += written
            rest = rest[written:]

    def read_at(self, position: int, size: int) -> bytes:
        try:
            data = os.pread(self._fd, size, position)
            while data and len(data) < size:
                more = os.pread(self._fd, size - len(data), position + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise disk_error(self.path, "read", error) from error
        return data

    def read_into(self, position: int, buffer: memoryview) -> int:
        total = 0
        try:
            while total < len(buffer):
                count = os.preadv(self._fd, [buffer[total:]], position + total)
                if not count:
                    break
                total += count
        except OSError as error:
            raise disk_error(self.path, "read", error) from error
        return total

    def read_into_if_cached(self, position: int, buffer: memoryview) -> int | None:
        if not self._can_ask_cache:
            return None
        try:
            count = os.preadv(self._fd, [buffer], position, os.RWF_NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise disk_error(self.path, "read", error) from error
            self._can_ask_cache = False
            return None
        if count < len(buffer) and position + count < self.size():
            return None  # the rest is on the disk
        return count

    def size(self) -> int:
        try:
            return os.fstat(self._fd).st_size
        except OSError as error:
            raise disk_error(self.path, "stat", error) from error

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            raise disk_error(self.path, "truncate", error) from error

    def reserve(self, position: int, size: int) -> None:
        _fallocate()(self._fd, _KEEP_SIZE, position, size)

    def let_go(self, position: int, size: int) -> None:
        with contextlib.suppress(OSError, AttributeError):  # some systems know no such advice
            os.posix_fadvise(self._fd, position, size, os.POSIX_FADV_DONTNEED)

    def drop_cache(self, position: int) -> bool:
        begin = position - position % _LARGEST_PAGE  # of a page that is half wanted none goes
        self.let_go(begin, 0)
        try:
            return not _is_any_cached(self._fd, begin, self.size())
        except (OSError, ValueError, AttributeError, DiskError):  # it cannot be mapped, or asked
            return False

    def sync(self) -> None:
        if self._fd < 0:
            raise DiskError(self.path, "sync", "the file is closed", errno.EBADF)
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            raise disk_error(self.path, "sync", error) from error

    def fileno(self) -> int | None:
        return self._fd

    def close(self) -> None:
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        with contextlib.suppress(OSError):  # what had to be durable was synced before
            os.close(fd)

    def __del__(self) -> None:
        """A file that nobody holds any more closes: a pool forgets, the last reader lets go."""
        self.close()


class PosixLock:
    """An exclusive lock that the kernel takes away when the process dies."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class PosixFileSystem:
    """The machine's file system."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False, write: bool = True) -> PosixFile:
        flags = os.O_CLOEXEC | (os.O_RDWR if write else os.O_RDONLY)
        if create:
            flags |= os.O_CREAT
        try:
            return PosixFile(path, os.open(path, flags, 0o600))
        except OSError as error:
            raise disk_error(path, "open", error) from error

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_open_to_all(self, path: str) -> bool:
        try:
            return bool(os.stat(path).st_mode & (stat_bits.S_IROTH | stat_bits.S_IWOTH))
        except OSError:
            return False

    def list_dir(self, path: str) -> list[DirEntry]:
        entries = []
        try:
            with os.scandir(path) as scan:
                for item in scan:
                    try:
                        stat = item.stat()
                    except FileNotFoundError:
                        continue  # it went while we looked
                    mtime_ms = stat.st_mtime_ns // 1_000_000
                    entries.append(DirEntry(item.name, item.is_dir(), stat.st_size, mtime_ms))
        except OSError as error:
            raise disk_error(path, "list", error) from error
        return entries

    def make_dir(self, path: str) -> None:
        try:
            os.mkdir(path, 0o700)  # not makedirs: it gives the parents other rights
        except FileNotFoundError as error:
            parent = parent_of(path)
            if not path or os.path.isdir(parent):  # where nothing can be made, as in /proc
                raise disk_error(path, "make directory", error) from error
            self.make_dir(parent)
            self.make_dir(path)
        except OSError as error:
            if not os.path.isdir(path):
                raise disk_error(path, "make directory", error) from error

    def rename(self, source: str, target: str) -> None:
        try:
            os.replace(source, target)
        except OSError as error:
            raise disk_error(source, f"rename to {target}", error) from error

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except OSError as error:
            raise disk_error(path, "remove", error) from error

    def remove_tree(self, path: str) -> None:
        import shutil  # needed when a topic goes, not at start

        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise disk_error(path, "remove", error) from error

    def sync_dir(self, path: str) -> None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise disk_error(path, "sync directory", error) from error

    def free_bytes(self, path: str) -> int:
        try:
            stat = os.statvfs(path)
        except OSError as error:
            raise disk_error(path, "statvfs", error) from error
        return stat.f_bavail * stat.f_frsize

    def disk_bytes(self, path: str) -> int:
        try:
            stat = os.statvfs(path)
        except OSError as error:
            raise disk_error(path, "statvfs", error) from error
        return stat.f_blocks * stat.f_frsize

    def lock(self, path: str) -> PosixLock:
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise disk_error(path, "lock", error) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise DirectoryLocked(path, "another process holds the lock") from error
            raise disk_error(path, "lock", error) from error
        return PosixLock(fd)

    def read_bytes(self, path: str) -> bytes:
        file = self.open(path, write=False)
        try:
            return file.read_at(0, file.size() + 1)
        finally:
            file.close()

    def read_text(self, path: str) -> str:
        return self.read_bytes(path).decode("utf-8", "replace")

    def write_atomically(self, path: str, data: bytes) -> None:
        replace_file(self, path, data)

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        try:
            os.utime(path, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))
        except OSError as error:
            raise disk_error(path, "set modification time", error) from error


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    monotonic = staticmethod(time.monotonic)


_DASH = 62
"""First six bits of an id that is written with "-" first: a command line takes it for an option.

Kafka makes none of these either (`Uuid.randomUuid`).
"""


class SystemRng:
    """The machine's randomness."""

    __slots__ = ()

    def uint64(self) -> int:
        return int.from_bytes(os.urandom(8))

    def below(self, limit: int) -> int:
        return int.from_bytes(os.urandom(16)) % limit

    def uuid(self) -> uuid.UUID:
        while (made := uuid.uuid4()).bytes[0] >> 2 == _DASH:
            pass
        return made


def real_env() -> Env:
    """Clock, files and randomness of this machine."""
    return Env(SystemClock(), PosixFileSystem(), SystemRng())
