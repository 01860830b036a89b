"""Lag of groups: in records, and in time by both clocks (time.md 10); in a fleet in records alone
where another node leads the partition.

Read from any thread: what the event loop may change meanwhile is copied first. A partition that is
deleted, or an offset committed for an older topic of the same name, has no lag.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from broker.groups.classic.group import Group
from broker.groups.records.classic import OffsetCommitValue
from protocol.wire import ZERO_UUID
from storage.log.log import Log

if TYPE_CHECKING:
    from broker.topics.metadata_image import MetadataImage


class Standing(NamedTuple):
    """Standing of one group in one partition."""

    group: str
    topic: str
    partition: int
    value: OffsetCommitValue
    log: Log | None
    """None where another node leads the partition: times are known there."""
    end: int
    """The high watermark; of another node as it said lately."""

    @property
    def records(self) -> int:
        """Offsets between what is committed and the end; those that are gone cannot be read."""
        start = self.value.offset
        if self.log is not None:
            start = max(start, self.log.snapshot.log_start_offset)
        return max(0, self.end - start)


def standings(groups: Mapping[str, Group], image: "MetadataImage") -> Iterator[Standing]:
    """Of all groups."""
    for group in list(groups.values()):
        yield from standings_of(group, image)


def standings_of(group: Group, image: "MetadataImage") -> Iterator[Standing]:
    """Of one group, in no order."""
    for (name, index), value in list(group.offsets.items()):
        topic = image.topics.get(name)
        found = topic.partition(index) if topic is not None else None
        if topic is None or found is None or value.topic_id not in {ZERO_UUID, topic.topic_id}:
            continue
        log = found.log if found.leader_elsewhere is None else None
        end = found.end_elsewhere if log is None else log.snapshot.high_watermark
        if value.offset >= 0 and end is not None:
            yield Standing(group.group_id, name, index, value, log, end)
