"""A log that goes on where another leader of its partition was: the same offsets, epochs and bytes.

What two leaders have written of one epoch is the same, since each epoch has one leader: so epochs
tell how far two logs agree.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from protocol.errors import KafkaError
from protocol.records.batch import stated_crc
from protocol.records.scan import BatchRow, scan_batches
from storage.errors import CorruptLog, LogOffline
from storage.log.log import Log
from storage.log.recent_arrivals import RecentBatch
from storage.log.settled_read import read_settled
from storage.search.search_clock import ARRIVAL, likely_arrival
from storage.segment.segments import index_of
from storage.validation.committed_batch import committed_batch
from storage.validation.dirty_timestamps import TimeRules
from storage.zones.view import ZoneView
from storage.zones.zone_map import ARRIVAL_ESTIMATED


class EpochRange(NamedTuple):
    """Offsets of one epoch, of which the end is not one."""

    epoch: int
    begin: int
    end: int


class LogBatch(NamedTuple):
    """A batch as it is stored, and when it came (ms)."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    arrival_ms: int
    data: bytes


def agreed_end(log: Log, ranges: Iterable[EpochRange], begin: int) -> int:
    """The offset up to which the log has what these ranges say, one after the other from `begin`.

    It begins a batch, or is the end of the log. Blocks. StorageError.
    """
    return min(_same_epochs(log, ranges, begin), _first_estimated(log))


def has_unwritten_epoch(log: Log) -> bool:
    """True when an epoch begins at the end of the log: nobody has written there in it."""
    latest = log.epochs.latest
    return latest is not None and latest.start_offset >= log.snapshot.log_end_offset


def _first_estimated(log: Log) -> int:
    """First offset of which it is not known when it came: a crash took that part of the zone map.

    Whoever has committed it knows.
    """
    snapshot = log.snapshot
    for number in range(snapshot.first_local, len(snapshot.segments)):
        view = log.search.look().at(snapshot.segments[number], snapshot.end_of(number), ARRIVAL)
        for index in range(view.zones.total):
            zone = view.zones.zone(index)
            if zone.flags & ARRIVAL_ESTIMATED:
                return zone.first_offset
    return snapshot.log_end_offset


def _same_epochs(log: Log, ranges: Iterable[EpochRange], begin: int) -> int:
    entries, log_end, agreed = log.epochs.entries, log.snapshot.log_end_offset, begin
    for each in ranges:
        if log.epochs.epoch_at(each.begin) != each.epoch:
            return min(agreed, log_end)
        later = (entry.start_offset for entry in entries if entry.start_offset > each.begin)
        agreed = min(each.end, next(later, each.end), log_end)
        if agreed < each.end:
            return agreed
    return min(agreed, log_end)


def append_committed(log: Log, data: bytes, arrival_ms: int, rules: TimeRules) -> int:
    """Appends the next batch as another leader has stored it; the offset behind it.

    Holds the writer gate, and blocks. CorruptBatch; CorruptLog when it is not the next one;
    StorageError.
    """
    batch = committed_batch(bytearray(data), arrival_ms, rules)
    header, end_offset = batch.header, log.snapshot.log_end_offset
    if header.base_offset != end_offset:
        raise CorruptLog(
            log.files.path, f"a batch of offset {header.base_offset} is to follow {end_offset}"
        )
    return log.append(batch, acks_all=True, leader_epoch=header.leader_epoch).last_offset + 1


def batches_between(log: Log, begin: int, end: int, max_bytes: int) -> Iterator[LogBatch]:
    """Batches from `begin`, where one begins, below `end`: whole ones within `max_bytes`, and one.

    Blocks. StorageError; LogOffline when offsets are missing, or where arrivals are kept and a
    batch is not as it was appended: compaction was there.
    """
    try:
        view = memoryview(read_settled(log, begin, max_bytes, end).read())
    except KafkaError as error:  # its start is behind them now
        raise LogOffline(log.files.path, error.message) from error
    next_offset, kept = begin, log.arrivals
    zones = _zones_at(log, begin)  # a read ends with its segment
    for row in scan_batches(view).batches:
        if row[1] != next_offset:
            raise LogOffline(log.files.path, f"offsets {next_offset} to {row[1]} are missing")
        next_offset = row[2] + 1
        appended = None if kept is None else kept.of(row[1])
        if appended is None:  # from before the log was loaded, or a thread is just appending it
            arrival_ms = _arrival(zones, row)
        else:
            arrival_ms = _kept_arrival(log, appended, view, row)
        yield LogBatch(row[1], row[2], row[4], arrival_ms, bytes(view[row[0] : row[0] + row[5]]))


def _kept_arrival(log: Log, appended: RecentBatch, view: memoryview, row: BatchRow) -> int:
    """Arrival of a batch that is still as it was appended. LogOffline."""
    if appended.crc != stated_crc(view, row[0]):
        text = f"the batch at offset {row[1]} is not as it was appended"
        raise LogOffline(log.files.path, text)
    return appended.arrival_ms


def _zones_at(log: Log, offset: int) -> ZoneView:
    snapshot = log.snapshot
    number = index_of(snapshot.segments, offset)
    segment, limit = snapshot.segments[number], snapshot.end_of(number)
    return log.search.look().at(segment, limit, ARRIVAL).zones


def _arrival(zones: ZoneView, row: BatchRow) -> int:
    """Arrival of a batch; between the first and the last of its zone, on the straight line."""
    zone = zones.zone(zones.holding_offset(row[1]))
    return zone.first_arrival_ms if row[1] <= zone.first_offset else likely_arrival(zone, row[2])
