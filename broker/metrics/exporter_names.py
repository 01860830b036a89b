"""Metrics of /metrics/kafka under the names of kafka_exporter, for the dashboards made for it.

Labels are spelled as that exporter spells them. The number of series is bounded as in groups.py and
partitions.py; sums by group and topic are exact as long as those are.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from operator import add
from typing import TYPE_CHECKING

from broker.groups.classic.group import Group
from broker.groups.lag import Standing
from broker.metrics.declare import Metric, Sample, gauge, one
from broker.metrics.groups import MAX_EXACT, by_place, lag_seconds
from broker.metrics.partitions import LABELS, per_partition, series
from broker.runtime.probes import OTHERS

if TYPE_CHECKING:
    from broker.metrics.view import MetricsView

GROUP_LABELS = ("consumergroup", "topic", "partition")


def _broker(broker: "MetricsView") -> Iterable[Sample]:
    return [((str(broker.node_id), str(broker.server.bootstrap)), 1.0)]


def _counts(broker: "MetricsView") -> Iterable[Sample]:
    found: Counter[str] = Counter()
    for (topic, *_), number in series(broker, lambda _: 1.0, add):
        found[topic] += int(number)
    return [((topic,), number) for topic, number in found.items()]


def _members(broker: "MetricsView") -> Iterable[Sample]:
    members = Counter({each.group_id: each.member_count for each in _groups(broker)})
    shown = members.most_common(MAX_EXACT)
    others = members.total() - sum(count for _, count in shown)
    rest = [((OTHERS,), float(others))] if len(members) > MAX_EXACT else []
    return [*(((group,), float(count)) for group, count in shown), *rest]


def _groups(broker: "MetricsView") -> list[Group]:
    return list(broker.groups.groups.values())


def _of_places(name: str, text: str, read: Callable[[Standing], int]) -> tuple[Metric, Metric]:
    """By partition, and summed by topic."""

    def summed(broker: "MetricsView") -> Iterable[Sample]:
        found: Counter[tuple[str, ...]] = Counter()
        for (group, topic, _), number in by_place(broker, read):
            found[group, topic] += int(number)
        return list(found.items())

    return (
        gauge(name, text, GROUP_LABELS, lambda broker: by_place(broker, read)),
        gauge(f"{name}_sum", f"{text} All partitions.", GROUP_LABELS[:2], summed),
    )


def _millis(broker: "MetricsView") -> Iterable[Sample]:
    return [
        (tuple(place), seconds * 1000)
        for (*place, clock), seconds in lag_seconds(broker)
        if clock == "record"
    ]


EXPORTER_METRICS = (
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
        lambda broker: series(broker, lambda _: broker.node_id, max),
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
        lambda broker: by_place(broker, lambda each: each.records),
    ),
    gauge(
        "kafka_consumer_lag_millis",
        "Time from the record that a group reads next to the newest one, by record time.",
        GROUP_LABELS,
        _millis,
    ),
)
