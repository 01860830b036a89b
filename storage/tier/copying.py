"""Copies one closed segment to the store, and proves that what arrived is what was sent.

Two objects: the `.log`, and all other files one after the other, so that a segment takes two
requests up and its indexes one down. Their names were never used before: a copy that was cut off
leaves objects that no manifest names, for the sweep. The caller puts the row into the manifest.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from protocol.checksum import crc32c
from storage.env import Buffer, File, FileSystem
from storage.errors import CorruptLog, FileMissing
from storage.files.layout import (
    LOG,
    OFFSET_INDEX,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    ZONES,
)
from storage.log.log import Log
from storage.search.search_clock import EARLIER
from storage.segment.segment import Segment
from storage.segment.times import learn_first_times, learn_times
from storage.tier.in_pieces import in_pieces
from storage.tier.manifest import FilePart, RemoteSegment
from storage.tier.names import RECORDS, SIDE, PartitionKeys
from storage.tier.object_cache import sums_of
from storage.tier.port import ObjectStore
from storage.zones.rows import UNTIMED

SIDE_FILES = (OFFSET_INDEX, TIME_INDEX, ZONES, TXN_INDEX, SNAPSHOT)
"""In the order in which they lie in their object: a search reads the first three."""
PART_BYTES = 4 * 1024 * 1024
"""Of a segment, read at a time; whole blocks."""

Pace = Callable[[int], None]
"""Called with the bytes that are about to be sent or fetched; may wait."""


class NotAsSent(CorruptLog):
    """The store has other bytes than were sent; the copy does not count."""


class Destination(NamedTuple):
    """Place of one copy."""

    store: ObjectStore
    keys: PartitionKeys
    unique: str
    pace: Pace
    spoilt: Callable[[str], None] = lambda key: None  # noqa: ARG005 - a default
    """Called with the key of an object that did not arrive as it was sent."""


def copy_segment(
    log: Log, segment: Segment, end_offset: int, to: Destination, producers: bytes | None = None
) -> RemoteSegment:
    """Copies a closed, synced segment of the log; the row of the copy.

    `producers`: the snapshot of its end; None: it is in the directory, if there is one.
    Blocks for as long as the store does. DiskError: of the disk or of the store. CorruptLog when
    the segment itself is damaged; NotAsSent. Nothing counts then.
    """
    untimed = _known_times(log, segment)
    records, block_sums = _send_records(segment, to)
    side, parts = _side_of(segment, end_offset, producers)
    sums = FilePart(len(side), len(block_sums), crc32c(block_sums))
    _send_side(segment, side + block_sums, to)
    return RemoteSegment(
        segment.base_offset,
        end_offset - 1,
        to.unique,
        {LOG: records, **parts},
        segment.max_timestamp,
        segment.max_timestamp_offset,
        segment.first_arrival_ms,
        segment.last_arrival_ms,
        segment.mtime_ms,
        untimed,
        sums,
        segment.first_timestamp,
    )


def _known_times(log: Log, segment: Segment) -> bool:
    """Have the segment know its times, and its files agree with its log; whether some lack one."""
    indexes, rules = log.search.lookup
    learn_times(segment, segment.size_bytes, indexes, rules)
    learn_first_times(segment, segment.size_bytes, indexes, rules)
    view = log.search.look().at(segment, segment.size_bytes, EARLIER)
    view.indexes.zones.flush()
    return view.zones.has_flags(UNTIMED)


def _send_records(segment: Segment, to: Destination) -> tuple[FilePart, bytes]:
    """The object of the `.log`, and the checksums of its blocks."""
    key = to.keys.segment(segment.base_offset, to.unique, RECORDS)
    reading = _Reading(segment.file(), segment.size_bytes, to.pace)
    to.store.put_file(key, reading.parts(), segment.size_bytes)
    _check(to, key, segment.size_bytes, reading.crc)
    return FilePart(0, segment.size_bytes, reading.crc), reading.block_sums


def _send_side(segment: Segment, side: bytes, to: Destination) -> None:
    key = to.keys.segment(segment.base_offset, to.unique, SIDE)
    to.pace(len(side))
    to.store.put_file(key, iter((side,)), len(side))
    _check(to, key, len(side), crc32c(side))


class _Reading:
    """A file on its way, and the CRC-32C of what was read."""

    def __init__(self, file: File, size_bytes: int, pace: Pace) -> None:
        self._file = file
        self._size_bytes = size_bytes
        self._pace = pace
        self.crc = 0
        self.block_sums = b""

    def parts(self) -> Iterator[Buffer]:
        for at in range(0, self._size_bytes, PART_BYTES):
            size = min(PART_BYTES, self._size_bytes - at)
            self._pace(size)
            data = self._file.read_at(at, size)
            if len(data) < size:
                raise CorruptLog(self._file.path, f"it ends at {at + len(data)}")
            self.crc = crc32c(data, self.crc)
            self.block_sums += sums_of(data)
            yield data


def _side_of(
    segment: Segment, end_offset: int, producers: bytes | None
) -> tuple[bytes, dict[str, FilePart]]:
    """The other files one after the other, and where each begins. A missing one is left out."""
    fs = segment.files.fs
    content, parts = bytearray(), {}
    for suffix in SIDE_FILES:
        path = segment.path_of(suffix)
        if suffix == SNAPSHOT:  # of the segment's end, as in KIP-405
            path = segment.files.name_of(end_offset, suffix)
        data = _read(fs, path) if suffix != SNAPSHOT or producers is None else producers
        if data:
            parts[suffix] = FilePart(len(content), len(data), crc32c(data))
            content += data
    return bytes(content), parts


def _read(fs: FileSystem, path: str) -> bytes:
    try:
        return fs.read_bytes(path)
    except FileMissing:
        return b""


def _check(to: Destination, key: str, size_bytes: int, crc: int) -> None:
    """Reads back what arrived. NotAsSent."""
    found = came = 0
    for piece in in_pieces(to.store, key, 0, size_bytes):
        found, came = crc32c(piece, found), came + len(piece)
    if came != size_bytes:
        to.spoilt(key)
        raise NotAsSent(key, f"{came} of {size_bytes} bytes arrived")
    if found != crc:
        to.spoilt(key)
        raise NotAsSent(key, "other bytes arrived than were sent")
