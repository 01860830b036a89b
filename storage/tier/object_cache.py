"""Bytes of the store's objects that are on this machine, in whole blocks, within a limit.

An object's blocks lie in a sparse file at their own positions, so what is served of it are slices
of a file, as of any local segment. The object that was used longest ago leaves as a whole: its file
loses its name, and readers who still have it open keep its bytes. What comes back later is another
file, of which nothing is known to be sound. Nothing here outlives the process.

On a disk that others need as well it takes only what they leave, and gives back what they come to
need, but for a part that readers cannot do without (`least_bytes`).
"""

from collections.abc import Callable, Iterator
from contextlib import suppress

from protocol.checksum import crc32c
from storage.env import Buffer, DirEntry, File, FileSystem
from storage.env import Lock as FileLock
from storage.errors import DiskError, FileMissing, NoSpace
from storage.locks import Lock

BLOCK_BYTES = 1024 * 1024
SUM_BYTES = 4
LEAST_BYTES = 16 * BLOCK_BYTES
LEAST_SHARE, LARGEST_LEAST_SHARE = 8, 4
LOCK_FILE = "0"
"""Numbered as the files beside it are: a version that knows of no lock takes the directory, too."""
_OF_A_MOUNT = "lost+found"


def sums_of(data: Buffer) -> bytes:
    """CRC-32C of each block of some bytes that begin with one, 4 bytes each."""
    view = memoryview(data)
    return b"".join(
        crc32c(view[at : at + BLOCK_BYTES]).to_bytes(SUM_BYTES, "big")
        for at in range(0, len(view), BLOCK_BYTES)
    )


def sums_between(sums: bytes, position: int, size: int) -> bytes:
    """Those of the checksums of an object's blocks that are of some bytes, which begin a block."""
    first = position // BLOCK_BYTES * SUM_BYTES
    return sums[first : first - (-size // BLOCK_BYTES) * SUM_BYTES]


def sums_by_reading(
    read: Callable[[int, int], bytes], size_bytes: int, at_once: int
) -> tuple[bytes, int]:
    """Checksums of the blocks of an object, and the CRC-32C of the whole; reads all of it.

    `at_once`: whole blocks, in bytes.
    """
    sums, crc = b"", 0
    for at in range(0, size_bytes, at_once):
        data = read(at, min(at_once, size_bytes - at))
        sums, crc = sums + sums_of(data), crc32c(data, crc)
    return sums, crc


class SparseCopy:
    """One object's blocks that are here. Blocks are only ever added."""

    __slots__ = ("_present", "bytes_here", "file", "key", "path", "size_bytes")

    def __init__(self, key: str, size_bytes: int, file: File) -> None:
        """None is here yet. The file is called by the object's key from now on, in errors too."""
        self.key = key
        self.path = file.path
        file.path = key
        self.size_bytes = size_bytes
        self.file = file
        self.bytes_here = 0
        self._present = bytearray(-(-size_bytes // BLOCK_BYTES))

    def has(self, position: int, size: int) -> bool:
        """True when all these bytes are here."""
        end = min(position + size, self.size_bytes)
        return position >= end or all(
            self._present[position // BLOCK_BYTES : -(-end // BLOCK_BYTES)]
        )

    def missing(self, position: int, size: int) -> Iterator[tuple[int, int]]:
        """Runs of whole blocks that are not here, as position and size."""
        end = min(position + size, self.size_bytes)
        run: int | None = None
        for block in range(position // BLOCK_BYTES, -(-end // BLOCK_BYTES)):
            if self._present[block]:
                if run is not None:
                    yield self._bytes_of(run, block)
                run = None
            elif run is None:
                run = block
        if run is not None:
            yield self._bytes_of(run, -(-end // BLOCK_BYTES))

    def came(self, position: int, size: int) -> int:
        """Whole blocks were written to the file; returns the bytes that were not here before."""
        first, before = position // BLOCK_BYTES, self.bytes_here
        for block in range(first, -(-(position + size) // BLOCK_BYTES)):
            if not self._present[block]:  # two threads may have fetched the same
                self._present[block] = 1
                self.bytes_here += self._bytes_of(block, block + 1)[1]
        return self.bytes_here - before

    def _bytes_of(self, first: int, behind: int) -> tuple[int, int]:
        position = first * BLOCK_BYTES
        return position, min(behind * BLOCK_BYTES, self.size_bytes) - position


MOST_FILES = 2000
"""Objects at most: small segments are many to a gigabyte, and a process may have so many files."""


def least_bytes(disk_bytes: int) -> int:
    """Bytes that a cache on a disk of this size keeps, whatever others need.

    An eighth of the disk, with less of which two readers would have each other's bytes go; but of
    a small disk more: what one fetch looks up and brings has to be here together.
    """
    return min(max(disk_bytes // LEAST_SHARE, LEAST_BYTES), disk_bytes // LARGEST_LEAST_SHARE)


def _is_own(entry: DirEntry) -> bool:
    """True for a file that a cache may have made: `ObjectCache.make` numbers them."""
    return not entry.is_dir and entry.name.isascii() and entry.name.isdecimal()


class ObjectCache:
    """All cached objects of a broker. Used from any thread."""

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        limit_bytes: int,
        *,
        most_files: int = MOST_FILES,
    ) -> None:
        """Nothing is touched before `open`. `most_files`: each object has one, which is open."""
        self.limit_bytes = limit_bytes
        self._most_files = most_files
        self.keep_free_bytes = 0
        """Free space of its disk that it leaves to others; 0: it has the disk for itself."""
        self.hits = self.misses = 0
        """Requests for bytes that were here, and that were not."""
        self.tells_memory = True
        """False on a file system that does not say what it has in memory (tmpfs, for one)."""
        self._fs = fs
        self._directory = directory
        self._gate = Lock()
        self._lock: FileLock | None = None
        self._files: dict[str, SparseCopy] = {}
        self._made = 0
        self.bytes_here = 0
        """Bytes in all of its files, kept as they come and go."""

    def open(self) -> None:
        """Begins empty: files that an earlier process left in the directory go.

        DiskError: also where anything else is there, which nobody has given away. DirectoryLocked:
        another broker has its files there, and each would read what the other wrote.
        """
        fs, directory = self._fs, self._directory
        fs.make_dir(directory)
        found = [each for each in fs.list_dir(directory) if each.name != _OF_A_MOUNT]
        others = sorted(each.name for each in found if not _is_own(each))
        if others:
            raise DiskError(directory, "empty", f"there is {others[0]}, which is no cache's")
        self._lock = fs.lock(f"{directory}/{LOCK_FILE}")
        for each in found:
            if each.name != LOCK_FILE:
                with suppress(FileMissing):
                    fs.remove(f"{directory}/{each.name}")

    def close(self) -> None:
        """Nobody uses it any longer: the directory may be another's."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def find(self, key: str) -> SparseCopy | None:
        """The object's file, as the one used last; None when nothing of it is here."""
        with self._gate:
            found = self._files.pop(key, None)
            if found is not None:
                self._files[key] = found
            return found

    def make(self, key: str, size_bytes: int) -> SparseCopy:
        """The object's file, made if need be: another one leaves when there are too many.

        DiskError.
        """
        with self._gate:
            found = self._files.get(key)
            if found is None:
                self._made += 1
                file = self._fs.open(f"{self._directory}/{self._made}", create=True)
                found = self._files[key] = SparseCopy(key, size_bytes, file)
        self._shrink(found, self.limit_bytes)
        return found

    def fill(self, cached: SparseCopy, position: int, data: Buffer) -> None:
        """Takes in blocks; others leave when there are too many bytes, or no space.

        NoSpace: what is here of the object itself takes too much, and is forgotten. DiskError.
        """
        try:
            self._write(cached, position, data)
        except NoSpace:
            self._shrink(cached, 0)
            self._fill_or_forget(cached, position, data)
        written = memoryview(bytearray(1))
        self.tells_memory = cached.file.read_into_if_cached(position, written) is not None
        self._shrink(cached, self._allowed_bytes())

    def _fill_or_forget(self, cached: SparseCopy, position: int, data: Buffer) -> None:
        try:
            self._write(cached, position, data)
        except NoSpace:
            self.forget(cached.key)
            raise

    def _write(self, cached: SparseCopy, position: int, data: Buffer) -> None:
        cached.file.write_at(position, data)
        with self._gate:
            added = cached.came(position, len(data))
            if self._files.get(cached.key) is cached:
                self.bytes_here += added

    def leave_free(self, size_bytes: int, disk_bytes: int) -> None:
        """Leave so much of a disk of that size to others; what they lack already goes. Blocks.

        On a disk of another size it is alone: nothing is left free there.
        """
        try:
            is_shared = self._fs.disk_bytes(self._directory) == disk_bytes
        except DiskError:
            return
        self.keep_free_bytes = size_bytes if is_shared else 0
        newest = next(reversed(list(self._files.values())), None)  # which is being read
        self._shrink(newest, self._allowed_bytes())

    def _allowed_bytes(self) -> int:
        """Bytes that it may have, by the free space of its disk as it is now."""
        if not self.keep_free_bytes:
            return self.limit_bytes
        try:
            free_bytes = self._fs.free_bytes(self._directory)
            least = least_bytes(self._fs.disk_bytes(self._directory))
        except DiskError:
            return self.limit_bytes
        room = self.bytes_here + free_bytes - self.keep_free_bytes
        return min(self.limit_bytes, max(least, room))

    def has_room(self, cached: SparseCopy, size_bytes: int) -> bool:
        """True when so many bytes more of the object may come here, even if it is alone then.

        Else who wants it forgets what is here: a segment may be larger than the disk.
        """
        here = cached.bytes_here
        return not here or here + size_bytes <= self._allowed_bytes()

    def forget(self, key: str) -> None:
        """The object is not asked for any longer."""
        with self._gate:
            self._drop(self._files.get(key))

    def _shrink(self, staying: SparseCopy | None, limit_bytes: int) -> None:
        with self._gate:
            while self.bytes_here > limit_bytes or len(self._files) > self._most_files:
                oldest = next((each for each in self._files.values() if each is not staying), None)
                if oldest is None:
                    break
                self._drop(oldest)

    def _drop(self, cached: SparseCopy | None) -> None:
        if cached is None:
            return
        del self._files[cached.key]
        self.bytes_here -= cached.bytes_here
        try:
            self._fs.remove(cached.path)
        except FileMissing:
            return
