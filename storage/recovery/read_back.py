"""After an unclean stop the page cache is no witness: what of a `.log` the disk has is read back.

A write whose fsync failed stays in the cache, marked clean, and the next fsync says yes; a killed
process leaves no word of it. So above the recovery point, which only successful syncs move, nothing
counts that was read from an old cache: it is dropped and comes from the disk. Where a file system
keeps it all the same, the bytes are written once more, which makes them unsynced again, and synced.
Either costs the tail once: reading it from the disk, or writing it.
"""

from storage.env import File
from storage.errors import CorruptLog
from storage.files.layout import LOG
from storage.scan.batch_walk import find_offset
from storage.segment.segment import Segment

CHUNK_BYTES = 8 * 1024 * 1024


def read_back(segment: Segment, durable_below: int) -> None:
    """Makes reads of the `.log` return the bytes on the disk. Blocks. DiskError.

    Bytes below the offset `durable_below` were synced once, and are left alone.
    """
    file, size = segment.file(), segment.size_bytes
    position = _position_of(file, size, segment.base_offset, durable_below)
    if position >= size:
        return
    file.sync()  # a killed process leaves bytes that nobody tried to write out yet
    if not file.drop_cache(position):
        _write_again(file, position, size)
        segment.files.fs.set_mtime(segment.path_of(LOG), segment.mtime_ms)


def _position_of(file: File, size: int, base_offset: int, offset: int) -> int:
    """Position of the first batch that ends at `offset` or behind it; by headers alone."""
    if offset <= base_offset:
        return 0
    try:
        place = find_offset(file, 0, size, offset)
    except CorruptLog:
        return 0
    return size if place is None else place.position


def _write_again(file: File, position: int, size: int) -> None:
    while position < size:
        data = file.read_at(position, min(CHUNK_BYTES, size - position))
        file.write_at(position, data)
        position += max(len(data), 1)
    file.sync()
