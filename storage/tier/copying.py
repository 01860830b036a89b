"""Copies one closed segment to the store, and proves that what arrived is what was sent.

Two objects: the `.log`, and all other files one after the other, so that a segment takes two
requests up and its indexes one down. Their names were never used before: a copy that was cut off
leaves objects that no manifest names, for the sweep. The caller puts the row into the manifest.
"""

from typing import NamedTuple

from protocol.checksum import crc32c
from storage.env import FileSystem
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
from storage.producers.lasting_snapshot import sound_snapshot
from storage.scan.log_scan import LogScan
from storage.search.search_clock import EARLIER
from storage.segment.segment import Segment
from storage.segment.times import learn_first_times, learn_times
from storage.tier.carrying import Carrier, Pace
from storage.tier.manifests.manifest import FilePart, RemoteSegment
from storage.tier.names import RECORDS, SIDE, PartitionKeys, epoch_of
from storage.zones.rows import UNTIMED

SIDE_FILES = (OFFSET_INDEX, TIME_INDEX, ZONES, TXN_INDEX, SNAPSHOT)
"""In the order in which they lie in their object: a search reads the first three."""
CHECK_BYTES = 256 * 1024
"""Read at a time to compare batches with their checksums: others have their turn in between."""


class DamagedSegment(CorruptLog):
    """A segment has a batch with a wrong CRC, or ends within one: its copy would last."""


class Destination(NamedTuple):
    """Place of one copy."""

    carrier: Carrier
    keys: PartitionKeys
    unique: str
    pace: Pace


def copy_segment(
    log: Log, segment: Segment, end_offset: int, to: Destination, producers: bytes | None = None
) -> RemoteSegment:
    """Copies a closed, synced segment of the log; the row of the copy.

    `producers`: the snapshot of its end; None: it is in the directory, if there is one.
    Blocks for as long as the store does. DiskError: of the disk or of the store. CorruptLog when
    the segment itself is damaged, DamagedSegment where in a fleet a batch is; NotAsSent. Nothing
    counts then.
    """
    if epoch_of(to.keys):  # the copy takes the place of commits, which are sound
        _check_batches(segment, end_offset)
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


def _check_batches(segment: Segment, end_offset: int) -> None:
    """DamagedSegment where one is not as its CRC says, or its offsets are not of the segment."""
    scan = LogScan(
        segment.file(),
        limit=segment.size_bytes,
        next_offset=segment.base_offset,
        below=end_offset,
        chunk_bytes=CHECK_BYTES,
    )
    for _ in scan.chunks():
        pass
    if scan.fault:
        text = f"the batch at {scan.end_position} is damaged ({scan.fault}): it is not copied"
        raise DamagedSegment(segment.path_of(LOG), text)


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
    size_bytes = segment.size_bytes
    sent = to.carrier.send_file(key, segment.file(), size_bytes, to.pace)
    return FilePart(0, size_bytes, sent.crc), sent.block_sums


def _send_side(segment: Segment, side: bytes, to: Destination) -> None:
    key = to.keys.segment(segment.base_offset, to.unique, SIDE)
    to.carrier.send_bytes(key, side, to.pace)


def _side_of(
    segment: Segment, end_offset: int, producers: bytes | None
) -> tuple[bytes, dict[str, FilePart]]:
    """The other files one after the other, and where each begins. A missing one is left out, and a
    snapshot that is torn.
    """
    fs, known = segment.files.fs, producers
    if known is None:
        known = sound_snapshot(fs, segment.files.name_of(end_offset, SNAPSHOT))
    content, parts = bytearray(), {}
    for suffix in SIDE_FILES:
        is_producers = suffix == SNAPSHOT  # of the segment's end, as in KIP-405
        data = known if is_producers else _read(fs, segment.path_of(suffix))
        if data:
            parts[suffix] = FilePart(len(content), len(data), crc32c(data))
            content += data
    return bytes(content), parts


def _read(fs: FileSystem, path: str) -> bytes:
    try:
        return fs.read_bytes(path)
    except FileMissing:
        return b""
