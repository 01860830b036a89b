"""However much clients create, the number of series is bounded and sums stay right."""

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from broker.metrics import exporter_names, groups
from broker.metrics.kafka_names import KAFKA_METRICS
from broker.metrics.partitions import MAX_EXACT, series
from broker.metrics.topics import TOPIC_METRICS, TOPIC_SPREADS
from broker.runtime.probes import MAX_SPREAD_TOPICS, MAX_TOPICS, OTHERS, BrokerProbes


def image_of(topics: int, partitions: int) -> Any:
    """A broker with so many topics, of so many partitions each, whose logs are their numbers."""
    logs = [SimpleNamespace(index=index, log=index) for index in range(partitions)]
    all_topics = {
        f"t{number}": SimpleNamespace(name=f"t{number}", partitions=logs, led_here=lambda: logs)
        for number in range(topics)
    }
    image = SimpleNamespace(topics=all_topics, partition_count=topics * partitions)
    return SimpleNamespace(image=image)


@pytest.mark.parametrize(
    ("topics", "partitions", "shown"),
    [(10, 100, 1000), (10, 101, 10), (MAX_TOPICS + 500, 2, MAX_TOPICS + 1)],
)
def test_series_of_partitions(topics: int, partitions: int, shown: int) -> None:
    found = dict(series(image_of(topics, partitions), lambda _: 1.0, float.__add__))
    assert len(found) == shown
    assert sum(found.values()) == topics * partitions
    assert all(index == "all" for _, index in found) == (topics * partitions > MAX_EXACT)


def test_series_of_topics_and_of_their_skew() -> None:
    probes = BrokerProbes(lambda: 0.0)
    count = MAX_TOPICS + 50
    for number in range(count):
        probes.appended(f"t{number}", 10, 1, 5)
        probes.dirty_timestamps(f"t{number}", "past", "zero", "stored", 2)
    broker: Any = SimpleNamespace(probes=probes)
    by_name = {metric.name: metric for metric in TOPIC_METRICS}
    for name, each in (("horolog_topic_received_bytes", 10), ("horolog_dirty_timestamps", 2)):
        found = dict(by_name[name].read(broker))
        assert len(found) == MAX_TOPICS + 1
        assert sum(found.values()) == each * count
        assert sum(value for key, value in found.items() if key[0] == OTHERS) == each * 50
    (skew,) = TOPIC_SPREADS
    counts = dict(skew.read(broker))
    assert len(counts) == MAX_SPREAD_TOPICS + 1
    assert sum(sum(each) for each in counts.values()) == count


def test_no_counter_falls_while_topics_come_and_go() -> None:
    probes, random = BrokerProbes(lambda: 0.0), Random(7)
    broker: Any = SimpleNamespace(probes=probes)
    of_topics = [each for each in (*TOPIC_METRICS, *KAFKA_METRICS[:7]) if each.kind == "counter"]
    of_topics = [each for each in of_topics if "topic" in each.labels]
    names = [f"t{number}" for number in range(MAX_TOPICS + 200)]
    told: dict[Any, float] = {}
    for _ in range(60):
        for name in random.sample(names, 300):
            probes.appended(name, 10, 2, 5)
            probes.fetched(name, 7)
            probes.append_failed(name)
            probes.read_failed(name)
            probes.dirty_timestamps(name, "past", "zero", "stored", 1)
        for name in random.sample(names, 40):
            probes.topic_deleted(name)
        now = dict(_counters(broker, of_topics))
        for series_of, before in told.items():
            assert now.get(series_of, before) >= before, series_of
        for always in ((name, label) for name, label, *_ in told if label in {"", OTHERS}):
            assert any(each[:2] == always for each in now), f"{always} has ended"
        told = now
    totals = {name: value for (name, label, *_), value in told.items() if label == ""}
    assert totals["kafka_server_brokertopicmetrics_bytesin"] == 60 * 300 * 10
    assert totals["kafka_server_brokertopicmetrics_totalfetchrequests"] == 60 * 300 * 2


def _counters(broker: Any, metrics: list[Any]) -> Any:
    for metric in metrics:
        if metric.name != "horolog_dirty_clients_forgotten":
            for labels, value in metric.read(broker):
                yield (metric.name, *labels), value
    (skew,) = TOPIC_SPREADS
    for labels, counts in skew.read(broker):
        yield (skew.name, *labels), sum(counts)


def standing(number: int, records: int) -> Any:
    value = SimpleNamespace(offset=number)
    return SimpleNamespace(group=f"g{number}", topic="t", partition=0, records=records, value=value)


@pytest.mark.parametrize("count", [groups.MAX_EXACT, groups.MAX_EXACT + 7])
def test_of_too_many_groups_those_furthest_behind_are_shown(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    all_groups = {f"g{n}": SimpleNamespace(group_id=f"g{n}", member_count=n) for n in range(count)}
    commits = SimpleNamespace(stored=count)
    coordinator = SimpleNamespace(commits=commits, groups=all_groups)
    broker: Any = SimpleNamespace(groups=coordinator, topics=SimpleNamespace(image=None))
    monkeypatch.setattr(groups, "standings", lambda *_: [standing(n, n) for n in range(count)])
    lags = dict(groups.by_place(broker.groups, broker.topics, lambda each: each.records))
    assert sum(lags.values()) == sum(range(count))
    members = {metric.name: metric for metric in exporter_names.EXPORTER_METRICS}
    shown = dict(members["kafka_consumergroup_members"].read(broker))
    assert sum(shown.values()) == sum(range(count))
    if count > groups.MAX_EXACT:
        assert lags[OTHERS, OTHERS, "all"] == sum(range(7))
        assert len(lags) == len(shown) == groups.MAX_EXACT + 1
        assert shown[(OTHERS,)] == sum(range(7))
        assert list(groups.lag_seconds(broker.groups, broker.topics)) == []
