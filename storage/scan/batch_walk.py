"""Walks batch headers in a `.log`, from a position that begins a batch, in small reads.

Headers only: no record is unpacked and no CRC checked; the bytes were checked when they were
written, or by recovery. A header that no batch can have is a `CorruptLog`, as is a batch that runs
past the limit, or, of several, one whose offsets do not follow those before it: no CRC covers
them. What is returned is within `limit`: the end of the log, or the begin of a batch.
"""

from collections.abc import Callable, Iterator
from struct import Struct
from typing import NamedTuple, Protocol

from protocol.records.batch import HEADER_BYTES, LENGTH_ENDS, CorruptBatch
from protocol.records.scan import resume_position, skip_to_offset, skip_to_timestamp
from storage.env import Buffer
from storage.errors import CorruptLog

FIRST_READ_BYTES = 4096 + 512
NEXT_READ_BYTES = 64 * 1024
MAGIC = 2

# base offset, length, attributes, last offset delta, maximum timestamp, record count
_HEAD = Struct(">qi9xhi8xq14xi")


class Readable(Protocol):
    """Source of batches: a file, or a part of one in memory."""

    path: str

    def read_at(self, position: int, size: int) -> bytes | memoryview:
        """The bytes at `position`: fewer than `size` only at the end of the file."""


class BatchPlace(NamedTuple):
    """Place of a batch, and facts of its header; its largest time in ms."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    attributes: int
    record_count: int

    @property
    def end_position(self) -> int:
        """Position of the next batch."""
        return self.position + self.size_bytes


def find_offset(file: Readable, position: int, limit: int, offset: int) -> BatchPlace | None:
    """The first batch whose last offset is at least `offset`; None if none is before `limit`.

    Reads on from `position`; an offset index says where to begin (`TrustedIndexes.find_offset`,
    `OffsetSearch`).
    """
    return _find(file, position, limit, offset, skip_to_offset)


def find_timestamp(file: Readable, position: int, limit: int, timestamp: int) -> BatchPlace | None:
    """The first batch whose largest time is at least `timestamp` (ms); None if there is none."""
    return _find(file, position, limit, timestamp, skip_to_timestamp)


def batch_at(file: Readable, position: int, limit: int) -> BatchPlace:
    """The batch that begins at `position`; CorruptLog if none can."""
    place = _find(file, position, min(limit, position + HEADER_BYTES), -1, skip_to_offset, limit)
    if place is None:
        raise CorruptLog(file.path, f"no batch begins at {position}")
    return place


def last_batch(file: Readable, position: int, limit: int) -> BatchPlace | None:
    """The last batch of those from `position` to `limit`, which must end with it; None if empty."""
    place = None
    for each in batches(file, position, limit):
        place = each
    return place


def batches(file: Readable, position: int, limit: int) -> Iterator[BatchPlace]:
    """The batches from `position` to `limit`, which must end with one, by their headers. Raises
    CorruptLog.
    """
    before = -1
    while position < limit:
        chunk = file.read_at(position, min(FIRST_READ_BYTES, limit - position))
        at = 0
        while at + HEADER_BYTES <= len(chunk):
            if chunk[at + 16] != MAGIC:
                raise CorruptLog(file.path, f"no batch begins at {position + at}")
            place = _place(file, chunk, at, position, limit)
            if place.base_offset <= before:
                raise CorruptLog(
                    file.path, f"offset {place.base_offset} at {place.position} follows {before}"
                )
            before = place.last_offset
            yield place
            at += place.size_bytes
        if not at:
            raise CorruptLog(file.path, f"{len(chunk)} bytes at {position} are no batch")
        position += at


def _find(  # noqa: PLR0917 - private, called by position
    file: Readable,
    position: int,
    limit: int,
    wanted: int,
    skip: Callable[[Buffer, int, int], int],
    end: int | None = None,
) -> BatchPlace | None:
    read_bytes = FIRST_READ_BYTES
    while position < limit:
        chunk = file.read_at(position, min(read_bytes, limit - position))
        try:
            found = skip(chunk, 0, wanted)
            if found >= 0:
                return _place(file, chunk, found, position, limit if end is None else end)
            passed = resume_position(chunk, 0)
        except CorruptBatch as error:
            raise CorruptLog(file.path, f"after {position}: {error}") from None
        if not passed:
            raise CorruptLog(file.path, f"{len(chunk)} bytes at {position} are no batch")
        position += passed
        if passed <= len(chunk):  # small batches: many are ahead
            read_bytes = min(4 * read_bytes, NEXT_READ_BYTES)
    if position > limit:
        raise CorruptLog(file.path, f"a batch runs past {limit}")
    return None


def _place(file: Readable, chunk: Buffer, found: int, position: int, limit: int) -> BatchPlace:
    base, length, attributes, delta, max_timestamp, count = _HEAD.unpack_from(chunk, found)
    size = length + LENGTH_ENDS
    place = BatchPlace(position + found, size, base, base + delta, max_timestamp, attributes, count)
    if place.end_position > limit or place.size_bytes < HEADER_BYTES:
        raise CorruptLog(file.path, f"the batch at {place.position} runs past {limit}")
    return place
