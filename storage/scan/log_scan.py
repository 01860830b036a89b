"""Reads a `.log` from a position to its end in large pieces, every batch with its CRC.

Owns the buffer, and the evidence where the good part ends; what to do about it is recovery's.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from protocol.checksum import crc32c
from protocol.records.batch import CRC_STARTS, HEADER_BYTES, LENGTH_ENDS, CorruptBatch, read_header
from protocol.records.scan import BatchRow, find_next_batch, scan_batches
from storage.scan.offset_order import OffsetOrder

CHUNK_BYTES = 8 * 1024 * 1024
SEARCH_BYTES = 64 * 1024 * 1024  # how far behind a damaged batch a good one is looked for
SECTOR_BYTES = 512
NO_LIMIT = 1 << 63
CUT_OFF = "it is cut off"


class Scannable(Protocol):
    """Source of a `.log`; see `storage.env.File`."""

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`."""

    def read_at(self, position: int, size: int) -> bytes:
        """The bytes at `position`."""


class ScannedChunk(NamedTuple):
    """Batches in a row. `rows` give positions within `data`, which begins at `position`."""

    data: memoryview
    position: int
    rows: list[BatchRow]


class LogScan:
    """One pass over a `.log`. After it `end_position` is where the good part ends."""

    __slots__ = ("_chunk_bytes", "_file", "_given", "_order", "end_position", "fault", "limit")

    def __init__(
        self,
        file: Scannable,
        position: int = 0,
        *,
        limit: int,
        next_offset: int = 0,
        below: int = NO_LIMIT,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> None:
        """A pass from `position`, which begins a batch, to `limit`.

        Batches with offsets under `next_offset`, or not `below` those that the segment may have,
        end it: no checksum covers an offset. It reads `chunk_bytes` at a time, more only for a
        larger batch.
        """
        self._file = file
        self._chunk_bytes = chunk_bytes
        self._order = OffsetOrder(next_offset - 1, below)
        self._given = next_offset  # behind the chunks before: those are not taken back
        self.limit = limit
        self.end_position = position
        self.fault = ""
        """Fault that ended the pass before the limit; empty if none."""

    @property
    def next_offset(self) -> int:
        """The offset after the good part."""
        return max(self._order.last + 1, self._given)

    def chunks(self) -> Iterator[ScannedChunk]:
        """The good batches, a chunk at a time; a chunk's data is valid until the next one."""
        size = self._chunk_bytes
        buffer = bytearray()
        while self.end_position < self.limit and not self.fault:
            begin = self.end_position
            size = min(size, self.limit - begin)
            if size > len(buffer):
                buffer = bytearray(size)
            asked = size
            view = memoryview(buffer)[:asked]
            view = view[: self._file.read_into(begin, view)]
            scan = scan_batches(view)
            rows = self._in_order(scan.batches, begin)
            size = self._chunk_bytes
            if not self.fault and scan.stop == "corrupt":
                self.fault = f"its {scan.fault} is wrong"
            elif not self.fault and scan.stop == "partial":
                if begin + scan.position + scan.needed > self.limit:
                    self.fault = CUT_OFF
                elif not rows:
                    size = scan.needed
            if not (self.fault or rows) and len(view) < asked:
                self.fault = CUT_OFF  # the file is shorter than the limit
            if rows:
                self.end_position = begin + rows[-1][0] + rows[-1][5]
                yield ScannedChunk(view, begin, rows)

    def good_batch_behind(self) -> int | None:
        """Position of a sound batch behind the fault with an offset that could follow, or None."""
        begin = self.end_position + 1
        while begin < min(self.limit, self.end_position + SEARCH_BYTES):
            data = self._file.read_at(begin, min(2 * CHUNK_BYTES, self.limit - begin))
            found = find_next_batch(data, 0)
            while found >= 0:
                if int.from_bytes(data[found : found + 8], "big") >= self.next_offset:
                    return begin + found
                found = find_next_batch(data, found + 1)
            begin += CHUNK_BYTES
        return None

    def lost_bytes(self) -> bool:
        """True when the faulty batch looks as if bytes of it never reached the disk.

        Those read as zeros, sector by sector; or the file is too short for the batch. Bit rot
        leaves neither: a batch with a wrong length field still has the CRC of what is there.
        """
        head = self._file.read_at(self.end_position, HEADER_BYTES)
        end = self.end_position + HEADER_BYTES
        if end > self.limit:
            return True
        try:
            header = read_header(head)
        except CorruptBatch:
            return self._has_zeroed_sector(end)
        end = self.end_position + header.size_bytes
        if end <= self.limit:
            return self._has_zeroed_sector(end)
        rest = self._file.read_at(self.end_position, self.limit - self.end_position)
        actual: int = crc32c(rest[CRC_STARTS:])
        return actual != header.crc

    def _has_zeroed_sector(self, end: int) -> bool:
        """True when a sector's part of the batch up to `end` is zeros where it cannot be."""
        begin = self.end_position
        while begin < end:
            sector_end = min(end, (begin // SECTOR_BYTES + 1) * SECTOR_BYTES)
            piece = self._file.read_at(begin, sector_end - begin)
            if not any(piece) and not self._may_be_zeros(begin, len(piece)):
                return True
            begin = sector_end
        return False

    def _may_be_zeros(self, begin: int, size: int) -> bool:
        """True when so few bytes there could be zeros in a sound batch."""
        if begin == self.end_position and size <= LENGTH_ENDS:
            return not any(self.next_offset.to_bytes(8, "big")[:size])
        return size < 2

    def _in_order(self, rows: list[BatchRow], begin: int) -> list[BatchRow]:
        """Those before the first one whose offsets do not fit in; the next one may show that."""
        self.fault = self._order.fault_in(rows, begin)
        if not self.fault:
            self._given = self._order.last + 1
            return rows
        unsound_from = max(self._order.unsound_from, begin)
        return [row for row in rows if begin + row[0] < unsound_from]
