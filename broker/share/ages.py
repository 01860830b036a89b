"""Age of the oldest record that a share group has not finished, by both clocks.

From memory, unless it may wait, and from any thread. By arrival that is the first unfinished record
of a partition. By record time it may be any behind it: `storage.search.oldest_time` says which.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from broker.share.partition import SharePartition
from broker.share.served_partition import ServedPartition
from broker.share.served_partitions import ServedPartitions
from broker.share.state.key import ShareKey
from broker.share.state.remembered import UNKNOWN, SharePartitionState
from broker.share.states import ACKNOWLEDGED, StateBatch
from broker.topics.metadata_image import MetadataImage
from storage.errors import StorageError
from storage.log.log import Log
from storage.search import oldest_time
from storage.search.segment_access import NotInMemory

MOST_ZONES_AT_ONCE, MOST_ZONES = 1, 256
"""Zones of 64 KiB in which some records are finished that are read for one age: from memory, and
where it may wait.
"""


class Unfinished(NamedTuple):
    """The first offset that a group has not finished in a partition."""

    group: str
    log: Log
    offset: int
    key: ShareKey
    behind: oldest_time.UnfinishedOffsets
    """The same, with what is finished behind it."""


class UnfinishedAge(NamedTuple):
    """Ages in seconds; 0 when all is finished, `record` None when no record has a time."""

    record: float | None
    arrival: float
    is_exact: bool = True
    """False where the age by record time is the one that is known: see `storage.search`."""


def unfinished(
    states: Mapping[ShareKey, SharePartitionState], served: ServedPartitions, image: MetadataImage
) -> Iterator[Unfinished]:
    """The share partitions whose start was decided, read or not.

    In a fleet those of the partitions that this node leads, as far as it has their states: because
    members read there, or because it is their share coordinator, too.
    """
    for key, state in list(states.items()):
        log = _log_of(key, image)
        if log is None or state.start_offset == UNKNOWN:
            continue
        found = served.find(key)
        behind = None if found is None else _behind_served(found)
        if behind is None:
            behind = _behind_stored(state)
        yield Unfinished(key.group, log, behind.first, key, behind)
    for each in served.all():
        log, behind = _log_of(each.key, image), _behind_served(each)
        if each.key not in states and log is not None and behind is not None:
            yield Unfinished(each.key.group, log, behind.first, each.key, behind)


def _behind_served(served: ServedPartition) -> oldest_time.UnfinishedOffsets | None:
    """Records of a queue that is read that are not finished; None while its state is read."""
    start, records = served.start, served.in_memory
    if start is None or records is None:
        return None
    window = records.window
    end = window.end + 1 if window.finished else start
    return oldest_time.UnfinishedOffsets(start, end, partial(_finished_in, records))


def _finished_in(records: SharePartition) -> Sequence[oldest_time.Range]:
    return [
        (run.first, run.last)
        for batch in list(records.window.batches)
        for run in batch.runs
        if run.is_finished
    ]


def _behind_stored(state: SharePartitionState) -> oldest_time.UnfinishedOffsets:
    start, batches = first_unfinished(state), state.batches
    end = batches[-1].last + 1 if batches else start
    return oldest_time.UnfinishedOffsets(start, end, partial(_finished_of, batches))


def _finished_of(batches: Sequence[StateBatch]) -> Sequence[oldest_time.Range]:
    return [(each.first, each.last) for each in batches if each.state >= ACKNOWLEDGED]


def _log_of(key: ShareKey, image: MetadataImage) -> Log | None:
    """The log of a partition that is led here."""
    topic = image.by_id.get(key.topic_id)
    partition = None if topic is None else topic.partition(key.partition)
    return None if partition is None or partition.leader_elsewhere else partition.log


def first_unfinished(state: SharePartitionState) -> int:
    """The start, behind what is finished from there on: what is stored is that of before."""
    start = state.start_offset
    for batch in state.batches:
        if batch.first > start or batch.state < ACKNOWLEDGED:
            break
        start = max(start, batch.last + 1)
    return start


def age_of(found: Unfinished, now_ms: int, *, may_wait: bool = False) -> UnfinishedAge | None:
    """The age; None when that would take the disk and it may not wait, or for damage."""
    log = found.log
    if max(found.offset, log.snapshot.log_start_offset) >= log.snapshot.high_watermark:
        return UnfinishedAge(0.0, 0.0)
    try:
        times = log.search.times_at(found.offset, may_wait=may_wait)
    except (NotInMemory, StorageError):
        return None
    if times is None:
        return UnfinishedAge(0.0, 0.0)
    oldest = _oldest(found, may_wait=may_wait)
    known = [each for each in (times.record_ms, oldest.record_ms) if each is not None and each >= 0]
    record = max(now_ms - min(known), 0) / 1000 if known else None
    return UnfinishedAge(record, max(now_ms - times.arrival_ms, 0) / 1000, oldest.is_exact)


def _oldest(found: Unfinished, *, may_wait: bool) -> oldest_time.OldestTime:
    """The least time by the zones, as far as it is known."""
    most = MOST_ZONES if may_wait else MOST_ZONES_AT_ONCE
    try:
        return found.log.search.oldest_time(found.behind, most, may_wait=may_wait)
    except (NotInMemory, StorageError):
        return oldest_time.OldestTime(None, is_exact=False)
