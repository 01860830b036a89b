"""Metrics of traffic by topic, and of records with bad times (time.md 2, 10).

The number of series is bounded whatever clients create: the topics that came first have series of
their own, all others share those of `OTHERS`, which is no name that a topic can have.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from broker.metrics.declare import Metric, Sample, Spread, counter, gauge, one
from broker.record_times.offenders import DirtyClients
from broker.runtime.probes import OTHERS, SKEW_BOUNDS_MS, BrokerProbes, TopicTraffic


class TopicView(NamedTuple):
    """Services that metrics of topics read."""

    probes: BrokerProbes
    dirty_clients: DirtyClients


def traffic(probes: BrokerProbes, read: Callable[[TopicTraffic], int]) -> Iterable[Sample]:
    """A number of each topic that had traffic since the start, and of all others together."""
    others = probes.other_topics
    live = probes.topics.copy()
    found = [((name,), float(read(each))) for name, each in live.items() if each is not others]
    if len(live) > len(found) or read(others):
        found.append(((OTHERS,), float(read(others))))
    return found


def _of_traffic(name: str, text: str, read: Callable[[TopicTraffic], int]) -> Metric[TopicView]:
    return counter(name, text, ("topic",), lambda view: traffic(view.probes, read))


def _damaged(view: TopicView) -> Iterable[Sample]:
    """Only topics that were hit have a series."""
    return [sample for sample in traffic(view.probes, lambda t: t.damaged_reads) if sample[1]]


def _skews(view: TopicView) -> Iterable[tuple[tuple[str, ...], list[int]]]:
    shared = view.probes.other_topics.skew
    live = view.probes.topics.copy()
    found = [((name,), list(each.skew)) for name, each in live.items() if each.skew is not shared]
    if len(live) > len(found) or any(shared):
        found.append(((OTHERS,), list(shared)))
    return found


def _dirty(view: TopicView) -> Iterable[Sample]:
    return list(view.probes.dirty.copy().items())


def _clients(view: TopicView) -> Iterable[Sample]:
    entries = view.dirty_clients.entries()
    known = {(guilt.topic, guilt.client_id, guilt.address) for guilt, _ in entries}
    return [((topic,), count) for topic, count in Counter(topic for topic, *_ in known).items()]


def _last_seen(view: TopicView) -> Iterable[Sample]:
    latest: dict[str, int] = {}
    for guilt, evidence in view.dirty_clients.entries():
        latest[guilt.topic] = max(latest.get(guilt.topic, 0), evidence.last_seen_ms)
    return [((topic,), at_ms / 1000) for topic, at_ms in latest.items()]


TOPIC_METRICS: tuple[Metric[TopicView], ...] = (
    _of_traffic("horolog_topic_received_bytes", "Bytes appended.", lambda t: t.bytes_in),
    _of_traffic("horolog_topic_sent_bytes", "Bytes of records fetched.", lambda t: t.bytes_out),
    _of_traffic("horolog_topic_received_records", "Records appended.", lambda t: t.records_in),
    _of_traffic("horolog_topic_received_batches", "Batches appended.", lambda t: t.batches_in),
    _of_traffic(
        "horolog_topic_reads",
        "Partitions in answers to fetches, empty ones included.",
        lambda t: t.reads,
    ),
    counter(
        "horolog_topic_damaged_reads",
        "Fetches of a partition that were refused because its bytes are not what was written.",
        ("topic",),
        _damaged,
    ),
    _of_traffic(
        "horolog_topic_failed_appends",
        "Appends to a partition that were refused or failed.",
        lambda t: t.failed_appends,
    ),
    _of_traffic(
        "horolog_topic_failed_reads",
        "Partitions with an error in answers to fetches.",
        lambda t: t.failed_reads,
    ),
    counter(
        "horolog_dirty_timestamps",
        "Records with a bad time, by direction, reason and outcome.",
        ("topic", "direction", "reason", "action"),
        _dirty,
    ),
    gauge(
        "horolog_dirty_timestamp_clients",
        "Clients known to have sent records with a bad time; /api/dirty names them.",
        ("topic",),
        _clients,
    ),
    gauge(
        "horolog_dirty_timestamp_last_seen_timestamp_seconds",
        "Arrival of the last record with a bad time, by the broker's clock.",
        ("topic",),
        _last_seen,
    ),
    counter(
        "horolog_dirty_clients_forgotten",
        "Entries evicted from the list of clients with bad times.",
        (),
        one(lambda view: view.dirty_clients.forgotten_entries),
    ),
)

TOPIC_SPREADS: tuple[Spread[TopicView], ...] = (
    Spread(
        "horolog_timestamp_skew_seconds",
        "Arrival minus record time of the latest record of each batch; below 0: in the future.",
        ("topic",),
        tuple(bound / 1000 for bound in SKEW_BOUNDS_MS),
        _skews,
    ),
)
