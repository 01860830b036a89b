"""Metrics of /metrics/kafka under the names of kafka_exporter, for the dashboards made for it.

Labels are spelled as that exporter spells them. The number of series is bounded as in groups.py and
partitions.py; sums by group and topic are exact as long as those are.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from operator import add
from typing import NamedTuple

from broker.groups.classic.group import Group
from broker.groups.coordinator import GroupCoordinator
from broker.groups.lag import Standing
from broker.metrics.declare import Metric, Sample, gauge, one
from broker.metrics.groups import MAX_EXACT, by_place, lag_seconds
from broker.metrics.partitions import LABELS, per_partition, series
from broker.runtime.probes import OTHERS
from broker.server.server import Server
from broker.topics.topic_catalog import TopicCatalog


class ExporterView(NamedTuple):
    """Services that metrics in the names of kafka_exporter read."""

    groups: GroupCoordinator
    topics: TopicCatalog
    server: Server
    node_id: int


GROUP_LABELS = ("consumergroup", "topic", "partition")


def _broker(view: ExporterView) -> Iterable[Sample]:
    return [((str(view.node_id), str(view.server.bootstrap)), 1.0)]


def _counts(view: ExporterView) -> Iterable[Sample]:
    found: Counter[str] = Counter()
    for (topic, *_), number in series(view.topics, lambda _: 1.0, add):
        found[topic] += int(number)
    return [((topic,), number) for topic, number in found.items()]


def _members(view: ExporterView) -> Iterable[Sample]:
    members = Counter({each.group_id: each.member_count for each in _groups(view)})
    shown = members.most_common(MAX_EXACT)
    others = members.total() - sum(count for _, count in shown)
    rest = [((OTHERS,), float(others))] if len(members) > MAX_EXACT else []
    return [*(((group,), float(count)) for group, count in shown), *rest]


def _groups(view: ExporterView) -> list[Group]:
    return list(view.groups.groups.values())


def _of_places(
    name: str, text: str, read: Callable[[Standing], int]
) -> tuple[Metric[ExporterView], Metric[ExporterView]]:
    """By partition, and summed by topic."""

    def summed(view: ExporterView) -> Iterable[Sample]:
        found: Counter[tuple[str, ...]] = Counter()
        for (group, topic, _), number in by_place(view.groups, view.topics, read):
            found[group, topic] += int(number)
        return list(found.items())

    return (
        gauge(name, text, GROUP_LABELS, lambda view: by_place(view.groups, view.topics, read)),
        gauge(f"{name}_sum", f"{text} All partitions.", GROUP_LABELS[:2], summed),
    )


def _millis(view: ExporterView) -> Iterable[Sample]:
    return [
        (tuple(place), seconds * 1000)
        for (*place, clock), seconds in lag_seconds(view.groups, view.topics)
        if clock == "record"
    ]


EXPORTER_METRICS: tuple[Metric[ExporterView], ...] = (
    gauge("kafka_brokers", "Brokers: one.", (), one(lambda _: 1.0)),
    gauge("kafka_broker_info", "Always 1.", ("id", "address"), _broker),
    gauge("kafka_topic_partitions", "Partitions of a topic.", ("topic",), _counts),
    per_partition(
        "kafka_topic_partition_current_offset",
        "Offset up to which consumers may read.",
        lambda log: log.snapshot.high_watermark,
        add,
    ),
    per_partition(
        "kafka_topic_partition_oldest_offset",
        "First offset.",
        lambda log: log.snapshot.log_start_offset,
        add,
    ),
    per_partition("kafka_topic_partition_replicas", "One.", lambda _: 1.0, max),
    per_partition("kafka_topic_partition_in_sync_replica", "One.", lambda _: 1.0, max),
    per_partition("kafka_topic_partition_leader_is_preferred", "Always.", lambda _: 1.0, max),
    per_partition("kafka_topic_partition_under_replicated_partition", "Never.", lambda _: 0.0, max),
    gauge(
        "kafka_topic_partition_leader",
        "Id of this broker.",
        LABELS,
        lambda view: series(view.topics, lambda _: view.node_id, max),
    ),
    gauge("kafka_consumergroup_members", "Members.", ("consumergroup",), _members),
    *_of_places(
        "kafka_consumergroup_current_offset",
        "Committed offset.",
        lambda each: each.value.offset,
    ),
    *_of_places(
        "kafka_consumergroup_lag",
        "Offsets between what is committed and the high watermark.",
        lambda each: each.records,
    ),
    gauge(
        "kafka_consumergroup_uncommitted_offsets",
        "As kafka_consumergroup_lag.",
        GROUP_LABELS,
        lambda view: by_place(view.groups, view.topics, lambda each: each.records),
    ),
    gauge(
        "kafka_consumer_lag_millis",
        "Time from the record that a group reads next to the newest one, by record time.",
        GROUP_LABELS,
        _millis,
    ),
)
