"""Segments of a tier, read from the store by range requests and nothing else.

Whole blocks of a MiB come and are compared with their CRC-32C, which lie beside the segment's other
files; a fault is asked for again, since answers are spoilt on their way more often than objects.
"""

from functools import partial
from typing import NamedTuple

from pipeline.directories.tier_store import StorePlace, patiently, store_at
from pipeline.errors import DamagedLog
from protocol.checksum import crc32c
from storage.errors import FileMissing
from storage.files.layout import LOG
from storage.tier.manifests.manifest import FilePart, RemoteSegment
from storage.tier.names import RECORDS, SIDE, PartitionKeys
from storage.tier.object_cache import BLOCK_BYTES, sums_between, sums_by_reading, sums_of
from storage.tier.port import ObjectMissing

REQUEST_BYTES = 8 * BLOCK_BYTES
"""Most bytes of one request."""
TRIES = 2


class StoredSegment(NamedTuple):
    """A segment in the store. Plain values: travels to who reads it."""

    place: StorePlace
    keys: PartitionKeys
    row: RemoteSegment

    @property
    def records_key(self) -> str:
        """Name of the object of its `.log`."""
        return self.keys.segment(self.row.base_offset, self.row.unique, RECORDS)

    @property
    def side_key(self) -> str:
        """Name of the object of its other files."""
        return self.keys.segment(self.row.base_offset, self.row.unique, SIDE)

    def side(self, part: FilePart) -> bytes | None:
        """One of its other files; None when it is lost, or not what was copied. StoreError."""
        for _ in range(TRIES):
            try:
                data = _range(self.place, self.side_key, part.position, part.size_bytes)
            except ObjectMissing:
                return None
            if len(data) == part.size_bytes and crc32c(data) == part.crc:
                return data
        return None


class TierLog:
    """The `.log` of a segment in the store, open for reading.

    At most one read's blocks are in memory.
    """

    __slots__ = ("_at", "_blocks", "_segment", "_size_bytes", "_sums", "identity", "path")

    def __init__(self, segment: StoredSegment) -> None:
        """Nothing is asked."""
        self.path = segment.records_key
        self.identity = int(segment.row.unique, 16)
        self._segment = segment
        self._size_bytes = segment.row.size_bytes
        self._sums = b""
        self._at, self._blocks = 0, b""

    def read_at(self, position: int, size: int) -> bytes:
        """The bytes at `position`. FileMissing, DamagedLog, StoreError."""
        size = max(0, min(size, self._size_bytes - position))
        if not size:
            return b""
        self._have(position, size)
        begin = position - self._at
        return self._blocks[begin : begin + size]

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`. FileMissing, DamagedLog, StoreError."""
        data = self.read_at(position, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def size(self) -> int:
        """Length in bytes."""
        return self._size_bytes

    def close(self) -> None:
        """Let go of what was read."""
        self._blocks = b""

    def _have(self, position: int, size: int) -> None:
        """Has whole blocks with these bytes in memory; those that are there already stay."""
        begin = position // BLOCK_BYTES * BLOCK_BYTES
        end = min(self._size_bytes, -(-(position + size) // BLOCK_BYTES) * BLOCK_BYTES)
        known_end = self._at + len(self._blocks)
        if self._at <= begin and end <= known_end:
            return
        is_joined = self._at <= begin < known_end
        kept = self._blocks[begin - self._at :] if is_joined else b""
        self._blocks = b""
        at = begin + len(kept)
        parts = [
            self._fetched(each, min(REQUEST_BYTES, end - each))
            for each in range(at, end, REQUEST_BYTES)
        ]
        self._at, self._blocks = begin, b"".join([kept, *parts])

    def _fetched(self, position: int, size: int) -> bytes:
        sums = self._sums = self._sums or self._known_sums()
        expected = sums_between(sums, position, size)
        for _ in range(TRIES):
            data = self._range(position, size)
            if len(data) == size and sums_of(data) == expected:
                return data
        raise DamagedLog(
            f"{self.path}: the {size} bytes at {position} are not what was copied; "
            "horolog tier verify --deep tells more"
        )

    def _known_sums(self) -> bytes:
        part = self._segment.row.sums
        found = None if part is None else self._segment.side(part)
        return found or self._sums_anew()

    def _sums_anew(self) -> bytes:
        """Checksums of the blocks, once all of it is what was copied. DamagedLog."""
        sums, crc = sums_by_reading(self._range, self._size_bytes, REQUEST_BYTES)
        if crc != self._segment.row.parts[LOG].crc:
            raise DamagedLog(
                f"{self.path}: it is not what was copied; horolog tier verify --deep tells more"
            )
        return sums

    def _range(self, position: int, size: int) -> bytes:
        try:
            return _range(self._segment.place, self.path, position, size)
        except ObjectMissing as error:
            raise FileMissing(self.path, "read", "the store has no such object") from error


def _range(place: StorePlace, key: str, position: int, size: int) -> bytes:
    return patiently(partial(store_at(place).get_range, key, position, size))
