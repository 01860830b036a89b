"""Offsets of the whole batches in a range of a log, by their headers; the last may be cut off."""

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from protocol.records.batch import (
    CONTROL,
    HEADER_BYTES,
    LENGTH_ENDS,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    CorruptBatch,
)
from storage.env import Buffer

FIRST_READ_BYTES = 4096
NEXT_READ_BYTES = 64 * 1024
MAGIC = 2

# base offset, length, magic, attributes, last offset delta, maximum timestamp, producer id
_HEAD = Struct(">qi4xb4xhi8xqq")

ReadAt = Callable[[int, int], Buffer]
"""Bytes at a position of the range: fewer than the size only at its end."""


class BatchBounds(NamedTuple):
    """Offsets of one batch, both included, and its place in the range."""

    first: int
    last: int
    position: int
    end_position: int
    producer_id: int
    attributes: int
    max_timestamp: int

    @property
    def is_control(self) -> bool:
        """True when the records are the broker's markers."""
        return bool(self.attributes & CONTROL)

    @property
    def is_stamped(self) -> bool:
        """True when the maximum timestamp is the time of every record."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def has_data_of_transaction(self) -> bool:
        """True for records that count only once their transaction is committed."""
        return self.attributes & (TRANSACTIONAL | CONTROL) == TRANSACTIONAL


def batch_bounds(read_at: ReadAt, size_bytes: int, last_offset: int) -> list[BatchBounds]:
    """The whole batches of a range that begins with one, up to the one with `last_offset`.

    No record is unpacked and no CRC checked. CorruptBatch for a header that no batch can have.
    """
    found: list[BatchBounds] = []
    position, read_bytes = 0, FIRST_READ_BYTES
    while position + HEADER_BYTES <= size_bytes:
        chunk = read_at(position, min(read_bytes, size_bytes - position))
        at = 0
        while at + HEADER_BYTES <= len(chunk):
            bounds = _bounds(chunk, at, position + at)
            if bounds.end_position > size_bytes:
                return found
            found.append(bounds)
            if bounds.last >= last_offset:
                return found
            at = bounds.end_position - position
        if not at:
            raise CorruptBatch(f"{len(chunk)} bytes are no batch", position)
        if at <= len(chunk):  # small batches: many are ahead
            read_bytes = NEXT_READ_BYTES
        position += at
    return found


def _bounds(chunk: Buffer, at: int, position: int) -> BatchBounds:
    base, length, magic, attributes, delta, largest, producer_id = _HEAD.unpack_from(chunk, at)
    size = length + LENGTH_ENDS
    if magic != MAGIC or size < HEADER_BYTES or base < 0 or delta < 0:
        raise CorruptBatch("the header of a batch is wrong", position)
    place = position, position + size
    return BatchBounds(base, base + delta, *place, producer_id, attributes, largest)
