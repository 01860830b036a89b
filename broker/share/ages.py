"""Age of the oldest record that a share group has not finished, by both clocks.

From memory, unless it may wait, and from any thread: by arrival that is the first unfinished record
of a partition; its own time is the age by record time.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from broker.share.served_partitions import ServedPartitions
from broker.share.state.key import ShareKey
from broker.share.state.remembered import UNKNOWN, SharePartitionState
from broker.share.states import ACKNOWLEDGED
from broker.topics.metadata_image import MetadataImage
from storage.errors import StorageError
from storage.log.log import Log
from storage.search.segment_access import NotInMemory


class Unfinished(NamedTuple):
    """The first offset that a group has not finished in a partition."""

    group: str
    log: Log
    offset: int
    key: ShareKey


class UnfinishedAge(NamedTuple):
    """Ages in seconds; 0 when all is finished, `record` None when the record has no time."""

    record: float | None
    arrival: float


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
        start = None if found is None else found.start
        offset = first_unfinished(state) if start is None else start
        yield Unfinished(key.group, log, offset, key)
    for each in served.all():
        log, start = _log_of(each.key, image), each.start
        if each.key not in states and log is not None and start is not None:
            yield Unfinished(each.key.group, log, start, each.key)


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
    record = max(now_ms - times.record_ms, 0) / 1000 if times.record_ms >= 0 else None
    return UnfinishedAge(record, max(now_ms - times.arrival_ms, 0) / 1000)
