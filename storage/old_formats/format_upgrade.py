"""Segments of formats 0 and 1, left by a Kafka before 0.11, become format 2 when a log is opened.

One file at a time: the new one is written beside it, made durable, and takes its name in one
rename; its indexes are removed, since positions change, and rebuilt. Offsets, times and timestamp
types, keys, values and codecs stay; the file keeps its modification time, by which records without
time age. Messages that came one by one are gathered into batches. What cannot be read is copied as
it is, so that recovery judges it as any other torn tail or damage. Rules: semantics.md 7.1, 7.2.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from protocol.errors import DecodeError
from protocol.records.batch import (
    CODEC_MASK,
    LOG_APPEND_TIME,
    CorruptBatch,
    InvalidRecords,
    read_header,
)
from protocol.records.old_formats.convert import up_convert
from protocol.records.old_formats.legacy import CRC_STARTS, OFFSET_AND_SIZE_BYTES
from storage.env import File, FileSystem
from storage.errors import FileMissing
from storage.files.layout import CLEANED, LOG, OFFSET_INDEX, TIME_INDEX, ZONES, segment_name
from storage.files.partition_listing import PartitionListing

CHUNK_BYTES = 4 * 1024 * 1024  # also how far behind a fault a sound message is looked for
BATCH_BYTES = 16 * 1024  # of messages that came one by one, in one batch

_STAMP = Struct(">q")
_STAMP_AT = 18
_LEAST = 26  # bytes of the smallest message
NOWHERE = 1 << 62


class Upgraded(NamedTuple):
    """Result of an upgrade of a log's old segments."""

    segments: int
    damaged_at: int | None
    """The first offset that is kept but cannot be read, if there is one."""


def upgrade_segments(
    fs: FileSystem, path: str, listing: PartitionListing, *, limit_bytes: int, is_clean: bool
) -> Upgraded:
    """Rewrite the old segments of the directory `path`. DiskError: those not done stay as is.

    A segment with zones was written by us, so it is not looked at. No wrapper may unpack to more
    than `limit_bytes`. Not `is_clean`: the end of the last segment may be torn.
    """
    count, damaged_at = 0, None
    for base in listing.bases:
        if ZONES in listing.beside.get(base, ()) or listing.logs[base].size_bytes < _LEAST:
            continue
        name = f"{path}/{segment_name(base, LOG)}"
        file = fs.open(name)
        try:
            if not _begins_with_old_message(file, limit_bytes):
                continue
            copy = _Copy(file, listing.logs[base].size_bytes, base, limit_bytes)
            _write(fs, name + CLEANED, copy)
        finally:
            file.close()
        fs.set_mtime(name + CLEANED, listing.logs[base].mtime_ms)
        _take_place(fs, path, base)
        count += 1
        is_last = base == listing.bases[-1]
        if copy.fault_at is not None and not (is_last and not is_clean and copy.is_torn):
            damaged_at = copy.next_offset if damaged_at is None else damaged_at
    return Upgraded(count, damaged_at)


def is_old_message(data: bytes | memoryview) -> bool:
    """True when `data` begins with a whole message of format 0 or 1 that has its CRC."""
    if len(data) < _LEAST or not _is_old(data):
        return False
    end = end_of_message(memoryview(data), 0)
    crc = int.from_bytes(data[OFFSET_AND_SIZE_BYTES:CRC_STARTS], "big")
    return end <= len(data) and crc32(memoryview(data)[CRC_STARTS:end]) == crc


def has_old_message(data: bytes, next_offset: int) -> bool:
    """True when there is a whole message of format 0 or 1 with an offset not under `next_offset`.

    Of the offset the upper five bytes are taken for those of `next_offset` or their successor.
    """
    if not any(data):
        return False
    for upper in (next_offset >> 24, (next_offset >> 24) + 1):
        at = data.find(wanted := upper.to_bytes(5, "big"))
        while at >= 0:
            head = data[at : at + _LEAST]
            is_later = int.from_bytes(head[:8], "big") >= next_offset
            if is_later and is_old_message(memoryview(data)[at:]):
                return True
            at = data.find(wanted, at + 1)
    return False


def _begins_with_old_message(file: File, limit_bytes: int) -> bool:
    """A sound one: zeros, which a power cut leaves, look like format 0 at first sight."""
    head = file.read_at(0, _LEAST)
    return _is_old(head) and is_old_message(
        file.read_at(0, min(end_of_message(memoryview(head), 0), limit_bytes))
    )


def _is_old(head: bytes | memoryview) -> bool:
    return len(head) > CRC_STARTS and int(head[CRC_STARTS]) < 2


def _write(fs: FileSystem, path: str, copy: "_Copy") -> None:
    """The new file, durable."""
    target = fs.open(path, create=True)
    try:
        target.truncate(0)
        position = 0
        for part in copy.parts():
            target.write_at(position, part)
            position += len(part)
        target.sync()
    finally:
        target.close()


def _take_place(fs: FileSystem, path: str, base: int) -> None:
    """The indexes go first: they speak of positions in the old file."""
    for suffix in (OFFSET_INDEX, TIME_INDEX):
        try:
            fs.remove(f"{path}/{segment_name(base, suffix)}")
        except FileMissing:
            continue
    name = f"{path}/{segment_name(base, LOG)}"
    fs.rename(name + CLEANED, name)
    fs.sync_dir(path)


class _Copy:
    """One pass over an old `.log`, as the bytes of the new one."""

    __slots__ = ("_file", "_limit_bytes", "_size", "fault_at", "is_torn", "next_offset")

    def __init__(self, file: File, size: int, base_offset: int, limit_bytes: int) -> None:
        self._file = file
        self._size = size
        self._limit_bytes = limit_bytes
        self.next_offset = base_offset
        self.fault_at: int | None = None
        """Position in the old file from which on it is copied as it is; None: nothing is."""
        self.is_torn = False
        """True when nothing sound follows that position."""

    def parts(self) -> Iterator[bytes | bytearray | memoryview]:
        """Batches of format 2, then what cannot be read."""
        position, wanted = 0, CHUNK_BYTES
        while position < self._size:
            data = memoryview(self._file.read_at(position, min(wanted, self._size - position)))
            done, end = 0, 0
            try:
                while (end := end_of_message(data, done)) <= len(data):
                    end, batch = self._batch(data, done, end)
                    yield batch
                    done = end
            except DecodeError:
                yield from self._rest(position + done)
                return
            position += done
            wanted = CHUNK_BYTES if done else end
            if not done and end > min(self._size - position, max(CHUNK_BYTES, self._limit_bytes)):
                yield from self._rest(position)
                return

    def _batch(self, data: memoryview, start: int, end: int) -> tuple[int, bytearray | memoryview]:
        """End of the batch's part of the old file, and the batch."""
        if data[start + CRC_STARTS] == 2:
            batch: bytearray | memoryview = data[start:end]
        else:
            end, batch = converted_run(data, start, end, self._limit_bytes)
        header = read_header(batch)
        if header.base_offset < self.next_offset:
            raise CorruptBatch(f"offset {header.base_offset} comes behind {self.next_offset}")
        self.next_offset = header.last_offset + 1
        return end, batch

    def _rest(self, position: int) -> Iterator[bytes]:
        self.fault_at = position
        self.is_torn = True
        while position < self._size:
            part = self._file.read_at(position, min(CHUNK_BYTES, self._size - position))
            if self.is_torn and position < self.fault_at + CHUNK_BYTES:
                self.is_torn = not has_old_message(part, self.next_offset)
            yield part
            position += len(part)


def converted_run(
    data: memoryview, start: int, end: int, limit_bytes: int
) -> tuple[int, bytearray]:
    """The batch of format 2 that the old messages from `start` on make, and where they end.

    The first one ends at `end`. Offsets stay. DecodeError for one that is damaged; none may unpack
    to more than `limit_bytes`.
    """
    run_end = _run_end(data, start, end)
    try:
        return run_end, up_convert(data[start:run_end], limit_bytes=limit_bytes, keep_offsets=True)
    except (CorruptBatch, InvalidRecords):  # perhaps a later one, or they do not go together
        return end, up_convert(data[start:end], limit_bytes=limit_bytes, keep_offsets=True)


def end_of_message(data: memoryview, start: int) -> int:
    """End of the message or batch at `start`; behind all data when there can be none."""
    if len(data) - start < _LEAST:
        return start + _LEAST
    size = int.from_bytes(data[start + 8 : start + OFFSET_AND_SIZE_BYTES], "big", signed=True)
    if size < _LEAST - OFFSET_AND_SIZE_BYTES:
        return NOWHERE
    return start + OFFSET_AND_SIZE_BYTES + size


def _run_end(data: memoryview, start: int, end: int) -> int:
    """The end of the messages from `start` on that one batch can hold: the first ends at `end`."""
    magic, attributes = data[start + CRC_STARTS], data[start + CRC_STARTS + 1]
    if attributes & CODEC_MASK:
        return end
    kind = _kind(data, start, magic)
    while end - start < BATCH_BYTES:
        following = end_of_message(data, end)
        if following > len(data) or _kind(data, end, magic) != kind:
            break
        end = following
    return end


def _kind(data: memoryview, start: int, magic: int) -> tuple[int, int, int]:
    """Common attributes of a batch's messages: format, attributes, the stamp if there is one.

    The magic number stands before the attributes; format 0 knows no stamp.
    """
    attributes = data[start + CRC_STARTS + 1]
    if not magic or not attributes & LOG_APPEND_TIME:
        return data[start + CRC_STARTS], attributes, 0
    return data[start + CRC_STARTS], attributes, _STAMP.unpack_from(data, start + _STAMP_AT)[0]
