"""A segment's zone map, as far as its rows agree with the log beside them, for readers of files.

Unlike a proof of the whole segment (`storage.verify.zones`) it looks at a few headers of the log
and at no record; unlike the repair (`storage.segment.zone_repair`) it makes no row that is missing.

The broker adds rows while a segment is being written, a little after the batches that they speak
of. A cut or a crash may leave rows behind the log's end, and a Kafka that ran in the directory
knows nothing of them. So rows are believed that begin where batches do, up to the last one whose
records are all there, with times inside its bounds. What follows is one more row that may hold
anything, and is read in any case.
"""

from contextlib import suppress
from typing import NamedTuple

from protocol.records.batch import LOG_APPEND_TIME
from storage.env import FileSystem
from storage.errors import CorruptLog, FileMissing
from storage.scan.batch_walk import BatchPlace, Readable
from storage.timestamps import INT64_MAX, INT64_MIN
from storage.zones.columns import ZoneColumns
from storage.zones.gaps import GapTimes
from storage.zones.proof import ZoneWalk, allows, begin_of
from storage.zones.rows import (
    ARRIVAL_ESTIMATED,
    ROW_BYTES,
    UNREAD,
    UNTIMED,
    sound_rows,
)

PROVED_ROWS = 8
ENDS_TRIED = 2
"""The last row of a segment that is being written may be ahead of the size that was seen."""
_UNKNOWN = UNREAD | ARRIVAL_ESTIMATED | UNTIMED
_MAX_INT32 = (1 << 31) - 1


class _End(NamedTuple):
    """End of a zone: its position, and its offset relative to the segment's base."""

    position: int
    offset: int


class SeenLog(NamedTuple):
    """A segment's `.log`, as much of it as was seen."""

    file: Readable
    base_offset: int
    size_bytes: int


def proved_rows(
    fs: FileSystem, path: str, log: SeenLog, *, closed_end: int | None = None
) -> ZoneColumns | None:
    """The believable rows of the zone map at `path`, and one for what they do not account for.

    `closed_end`: a checksum says that both files are those of one closed segment, which ends before
    that offset, so the log is asked only for the end of a last row that has holes. None when there
    are none. DiskError.
    """
    try:
        data = fs.read_bytes(path)
    except FileMissing:
        return None
    sound, _ = sound_rows(data)
    zones = ZoneColumns.of_rows(data[: sound * ROW_BYTES])
    count = zones.holding_position(log.size_bytes - 1, sound) + 1
    is_proved = closed_end is not None
    if is_proved and count == sound and _last_end(zones, log) == closed_end:
        return zones
    for believed in range(count, max(0, count - ENDS_TRIED), -1):
        end = _end_of(zones, believed - 1, log)
        if end is not None:
            fits = is_proved or _fit(zones, believed, log)
            return _with_rest(zones, believed, end, log) if fits else None
    return None


def _last_end(zones: ZoneColumns, log: SeenLog) -> int:
    """The offset behind the last row's records, if none is missing between them; else less."""
    return log.base_offset + zones.offsets[-1] + zones.counts[-1] if len(zones) else 0


def _fit(zones: ZoneColumns, count: int, log: SeenLog) -> bool:
    """True when rows begin where batches do; some of them are looked at."""
    if zones.positions[0] != 0:
        return False
    try:
        return all(
            _begins(zones, row, log)
            for row in {*range(0, count, max(1, count // PROVED_ROWS)), count - 1}
        )
    except CorruptLog:
        return False


def _begins(zones: ZoneColumns, row: int, log: SeenLog) -> bool:
    first_offset = log.base_offset + zones.offsets[row]
    place = begin_of(log.file, zones.positions[row], first_offset, log.size_bytes)
    return place is not None and _is_within(zones, row, place)


def _end_of(zones: ZoneColumns, index: int, log: SeenLog) -> _End | None:
    """The end of a zone whose batches are all there and as its row says; None if they are not."""
    if zones.flags[index] & UNREAD:
        return _End(log.size_bytes, 0)
    walk = ZoneWalk(log.file, zones.positions[index], zones.counts[index], log.size_bytes)
    end = None
    with suppress(CorruptLog):  # the log is cut off there, or something else is there
        for place in walk:
            if not _is_within(zones, index, place):
                return None
            end = _End(place.end_position, place.last_offset + 1 - log.base_offset)
    return None if walk.missing else end


def _is_within(zones: ZoneColumns, index: int, place: BatchPlace) -> bool:
    """True when the row allows the batch's largest time; a stamp is none that the row knows."""
    if place.attributes & LOG_APPEND_TIME or not place.record_count:
        return True
    row = GapTimes(zones.lows[index], zones.highs[index], zones.flags[index])
    return allows(row, place.max_timestamp, place.max_timestamp)


def _with_rest(zones: ZoneColumns, count: int, end: _End, log: SeenLog) -> ZoneColumns:
    if end.position >= log.size_bytes and count == len(zones):
        return zones
    zones = zones.kept(count)
    if end.position < log.size_bytes:
        last = zones.last_arrivals[-1]
        offset = min(end.offset, _MAX_INT32)
        zones.append((offset, end.position, 0, _UNKNOWN, INT64_MIN, INT64_MAX, last, last))
    return zones
