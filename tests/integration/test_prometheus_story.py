"""A client with a broken clock, as a real Prometheus sees it.

Every time metric moves, the alerts fire, and each ends once its cause is gone; meanwhile no panel
of a dashboard stays empty for want of a metric.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.records.builder import build_batch
from tests.support.clients.admin import Admin
from tests.support.clients.prometheus import (
    Prometheus,
    hurried,
    needs_prometheus,
    panels,
    prometheus,
)
from tests.support.worlds.watched_broker import WatchedBroker, fetch_from, produce_to

HELD, HELD_MS = "2026-03-01T12:00:00Z", 1_772_366_400_000
HOUR_MS = 3_600_000
TOPIC = 2  # a kind of resource
CLEANER_MS = 12 * HOUR_MS
TIME_METRICS = (  # time.md 10; the histogram by its count
    "horolog_log_cleaner_max_compaction_delay_seconds",
    "horolog_log_compaction_delay_seconds",
    "horolog_log_cleaner_logs_compacted_by_max_lag",
    "horolog_dirty_timestamps_total",
    "horolog_timestamp_skew_seconds_count",
    "horolog_retention_overdue_seconds",
    "horolog_retention_blocked_segments",
    "horolog_log_max_record_timestamp_seconds",
    "horolog_log_last_arrival_timestamp_seconds",
    "horolog_consumer_lag_records",
    "horolog_consumer_lag_seconds",
    "horolog_broker_clock_steps_total",
    "horolog_clock_hold",
)
EMPTY_WHEN_ALL_IS_WELL = {
    "Connections ended and refused by the broker",
    "Errors in answers",
    "How long the oldest open one holds readers up",
    "Requests slowed down by a quota",
    "Set aside",
}
ALERTS = {
    "HorologDirtyTimestamps",
    "HorologManyDirtyTimestamps",
    "HorologExpiredOnArrival",
    "HorologRetentionBlocked",
    "HorologSearchBlind",
    "HorologClockStepped",
    "HorologClockInDoubt",
    "HorologConsumerLate",
    "HorologCompactionLate",
}


class Outage:
    """The broker, its clock, and a client that claims whatever the test says."""

    def __init__(self, broker: WatchedBroker) -> None:
        self.broker = broker
        self.admin = Admin(broker.process.facts["http"])

    def begin(self) -> None:
        """All is well: a topic under Kafka's own retention, one that compacts, a reader."""
        rules = {"horolog_retention_clock": "record", "horolog_timestamp_policy": "accept"}
        self.broker.make_topic("t", **rules, retention_ms=str(6 * HOUR_MS), segment_ms="60000")
        bounds = {"max_compaction_lag_ms": str(HOUR_MS), "min_cleanable_dirty_ratio": "1"}
        self.broker.make_topic("c", cleanup_policy="compact", **bounds)
        self.write("t", HELD_MS)
        self.commit(0)

    def write(self, topic: str, *times_ms: int) -> None:
        with self.broker.client() as client:
            for at_ms in times_ms:
                batch = build_batch([(at_ms, b"key", b"value")])
                assert produce_to(client, batch, topic=topic).error_code == 0
            assert fetch_from(client, topic=topic).responses[0].partitions[0].error_code == 0

    def commit(self, offset: int) -> None:
        settings = {"bootstrap.servers": self.broker.process.bootstrap, "group.id": "g"}
        consumer = Consumer({**settings, "logger": None})
        consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
        consumer.close()

    def pass_time(self, by: str) -> None:
        self.admin.post("/api/clock/step", by=by)

    def set_of_topic(self, name: str, key: str, value: str) -> None:
        config = AlterableConfig(name=key, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=[config])
        with self.broker.client() as client:
            request = IncrementalAlterConfigsRequest(resources=[resource])
            assert client.call(request, 1).responses[0].error_code == 0

    def go_wrong(self) -> None:
        """The client's clock breaks, the machine's is set back, and the cleaner rests."""
        self.write("c", HELD_MS)
        now_ms = HELD_MS
        self.write("t", now_ms + 20 * 365 * 24 * HOUR_MS, now_ms // 1000)
        self.pass_time("2m")
        self.write("t", now_ms + 120_000)
        self.pass_time("2m")
        self.write("t", now_ms + 240_000)
        self.pass_time("8h")
        self.write("t", now_ms + 8 * HOUR_MS)
        self.admin.post("/api/clock/step", by="-10m", clock="wall")

    def mend(self) -> None:
        """What the runbook says, alert by alert; the cleaner comes round at last."""
        self.admin.post("/api/clock/confirm")
        self.set_of_topic("t", "horolog.retention.clock", "arrival")
        self.commit(self.end_of("t"))
        self.pass_time("5h")

    def end_of(self, topic: str) -> int:
        place = {"topic": topic, "partition": "0"}
        return int(self.broker.metric("horolog_log_high_watermark_offset", **place))


@contextmanager
def outage(tmp_path: Path) -> Iterator[Outage]:
    settings = {
        "log.cleaner.backoff.ms": str(CLEANER_MS),
        "log.retention.check.interval.ms": "60000",
    }
    options = ["--test-clock", HELD]
    with WatchedBroker(tmp_path / "data", settings, options=options) as broker:
        story = Outage(broker)
        story.admin.post("/api/clock/freeze")
        story.begin()
        yield story


def sums(watcher: Prometheus) -> dict[str, float]:
    """Each time metric, all series added, as Prometheus has it now."""
    return {name: total(watcher.query(f"sum({name})")) for name in TIME_METRICS}


def total(series: list[dict[str, Any]]) -> float:
    return sum(float(each["value"][1]) for each in series)


def empty_panels(watcher: Prometheus) -> set[str]:
    """Panels without a line; those of the tier aside, which this broker does not have."""
    return {title for title, text in panels("horolog-tier.json") if not watcher.query(text)}


@needs_prometheus
def test_every_time_metric_moves_and_the_alerts_fire_and_clear(tmp_path: Path) -> None:
    with (
        outage(tmp_path) as story,
        prometheus(story.admin.address, tmp_path, hurried(10)) as watcher,
    ):
        before = sums(watcher)
        assert watcher.firing() == {}

        story.go_wrong()
        fired: dict[str, Any] = {}

        def all_have_fired() -> bool:
            story.write("t", HELD_MS // 1000)
            fired.update(watcher.firing())
            return fired.keys() >= ALERTS

        watcher.until(f"all of {ALERTS}", all_have_fired)
        assert fired["HorologConsumerLate"]["group"] == "g"
        assert fired["HorologExpiredOnArrival"]["topic"] == "t"
        wrong = sums(watcher)
        empty = empty_panels(watcher)
        story.mend()
        watcher.until("an end to all", lambda: not watcher.firing().keys() & ALERTS)
        mended = sums(watcher)
        assert empty & empty_panels(watcher) <= EMPTY_WHEN_ALL_IS_WELL
    stood_still = {n for n in TIME_METRICS if before[n] == wrong[n] == mended[n]}
    assert stood_still == set()
