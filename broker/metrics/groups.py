"""Gauges of groups: their number by state, and their lag, in records and in time.

Up to `MAX_EXACT` committed offsets each has its series. Beyond that the label `partition` is `all`:
records are summed, and lags in time, which cost a look into the log each, are left out. Of more
than `MAX_EXACT` pairs of group and topic those furthest behind are shown, the others together as
`OTHERS`. A scrape reads no file: a lag in time that would need one has no series until a client has
read there.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from broker.groups.classic.group import GroupState
from broker.groups.consumer.group import ConsumerState
from broker.groups.coordinator import GroupCoordinator
from broker.groups.lag import Standing, standings
from broker.groups.streams.group import StreamsState
from broker.metrics.declare import Metric, Sample, counter, gauge, one
from broker.runtime.probes import OTHERS
from broker.topics.topic_catalog import TopicCatalog
from storage.errors import StorageError
from storage.search.segment_access import NotInMemory


class GroupView(NamedTuple):
    """Services that metrics of groups read."""

    groups: GroupCoordinator
    topics: TopicCatalog


MAX_EXACT = 1000
STATES = tuple(
    dict.fromkeys(
        str(state.value)
        for state in (*GroupState, *ConsumerState, *StreamsState)
        if state is not GroupState.DEAD
    )
)
LABELS = ("group", "topic", "partition")


def by_place(
    groups: GroupCoordinator, topics: TopicCatalog, read: Callable[[Standing], int]
) -> Iterable[Sample]:
    """A number of each committed offset, by group, topic and partition, as bounded as above."""
    standing = list(standings(groups.groups, topics.image))
    if _is_exact(groups):
        return [
            ((each.group, each.topic, str(each.partition)), float(read(each))) for each in standing
        ]
    behind: Counter[tuple[str, str]] = Counter()
    for each in standing:
        behind[each.group, each.topic] += each.records
    shown = {pair for pair, _ in behind.most_common(MAX_EXACT)}
    found: Counter[tuple[str, ...]] = Counter()
    for each in standing:
        pair = (each.group, each.topic)
        found[(*(pair if pair in shown else (OTHERS, OTHERS)), "all")] += read(each)
    return list(found.items())


def lag_seconds(groups: GroupCoordinator, topics: TopicCatalog) -> Iterable[Sample]:
    """By group, topic, partition and clock; none when there are too many."""
    if not _is_exact(groups):
        return []
    return [sample for each in standings(groups.groups, topics.image) for sample in _times(each)]


def _is_exact(groups: GroupCoordinator) -> bool:
    return groups.commits.stored <= MAX_EXACT


def _times(standing: Standing) -> Iterable[Sample]:
    labels = standing.group, standing.topic, str(standing.partition)
    if standing.log is None:
        return
    try:
        lag = standing.log.search.lag_at(standing.value.offset, may_wait=False)
    except (NotInMemory, StorageError):
        return
    if lag.record_ms is not None:
        yield (*labels, "record"), lag.record_ms / 1000
    yield (*labels, "arrival"), lag.arrival_ms / 1000


def _states(view: GroupView) -> Iterable[Sample]:
    found = Counter(group.state_name for group in list(view.groups.groups.values()))
    return [((state,), found[state]) for state in STATES]


def _members(view: GroupView) -> float:
    return sum(group.member_count for group in list(view.groups.groups.values()))


def _generations(view: GroupView) -> float:
    groups = view.groups
    return groups.rebalances.count + groups.consumers.count + groups.streams.count


GROUP_METRICS: tuple[Metric[GroupView], ...] = (
    gauge("horolog_groups", "Groups by their state.", ("state",), _states),
    gauge("horolog_group_members", "Members of all groups.", (), one(_members)),
    gauge(
        "horolog_group_members_bytes",
        "Memory for metadata and assignments of members of all groups.",
        (),
        one(lambda view: view.groups.footprint.total_bytes),
    ),
    gauge(
        "horolog_group_committed_offsets",
        "Offsets that groups have committed.",
        (),
        one(lambda view: view.groups.commits.stored),
    ),
    counter(
        "horolog_group_generations",
        "Generations of groups that began.",
        (),
        one(_generations),
    ),
    counter(
        "horolog_group_records_unreadable",
        "Records of groups that could not be read back at the start.",
        (),
        one(lambda view: view.groups.loading.unreadable_records),
    ),
    gauge(
        "horolog_consumer_lag_records",
        "Offsets between what a group has committed and the high watermark.",
        LABELS,
        lambda view: by_place(view.groups, view.topics, lambda each: each.records),
    ),
    gauge(
        "horolog_consumer_lag_seconds",
        "Time from the record that a group reads next to the newest one, by either clock.",
        (*LABELS, "clock"),
        lambda view: lag_seconds(view.groups, view.topics),
    ),
)
