"""What a scrape promises: every metric of the design by name, type and labels, and no faulty line.

A live broker is read as Prometheus reads it; `promtool check metrics` judges the names.
"""

import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from protocol.records.builder import build_batch
from tests.support.worlds.watched_broker import WatchedBroker, produce_to, small_batch

needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not here")

PLACE, GROUP_PLACE = {"topic", "partition"}, {"group", "topic", "partition"}
TIME: Mapping[str, tuple[str, set[str]]] = {
    # time.md 10
    "horolog_log_cleaner_max_compaction_delay_seconds": ("gauge", set()),
    "horolog_log_compaction_delay_seconds": ("gauge", PLACE),
    "horolog_log_cleaner_logs_compacted_by_max_lag": ("gauge", set()),
    "horolog_dirty_timestamps": ("counter", {"topic", "direction", "reason", "action"}),
    "horolog_timestamp_skew_seconds": ("histogram", {"topic"}),
    "horolog_retention_overdue_seconds": ("gauge", PLACE),
    "horolog_retention_blocked_segments": ("gauge", PLACE),
    "horolog_log_max_record_timestamp_seconds": ("gauge", PLACE),
    "horolog_log_last_arrival_timestamp_seconds": ("gauge", PLACE),
    "horolog_consumer_lag_records": ("gauge", GROUP_PLACE),
    "horolog_consumer_lag_seconds": ("gauge", GROUP_PLACE | {"clock"}),
    "horolog_broker_clock_steps": ("counter", set()),
    "horolog_clock_hold": ("gauge", set()),
    # and what operators need beside them
    "horolog_broker_clock_step_seconds": ("counter", {"direction"}),
    "horolog_dirty_timestamp_clients": ("gauge", {"topic"}),
    "horolog_dirty_timestamp_last_seen_timestamp_seconds": ("gauge", {"topic"}),
    "horolog_log_effective_max_timestamp_seconds": ("gauge", PLACE),
    "horolog_log_oldest_timestamp_seconds": ("gauge", PLACE),
    "horolog_log_retention_horizon_timestamp_seconds": ("gauge", PLACE),
}
USUAL: Mapping[str, tuple[str, set[str]]] = {
    "horolog_requests": ("counter", {"api"}),
    "horolog_request_errors": ("counter", {"api", "error"}),
    "horolog_request_duration_seconds": ("histogram", {"api"}),
    "horolog_fetch_duration_seconds": ("histogram", set()),
    "horolog_time_lookup_duration_seconds": ("histogram", set()),
    "horolog_connections": ("gauge", set()),
    "horolog_network_received_bytes": ("counter", set()),
    "horolog_network_sent_bytes": ("counter", set()),
    "horolog_topic_received_bytes": ("counter", {"topic"}),
    "horolog_topic_sent_bytes": ("counter", {"topic"}),
    "horolog_topic_received_records": ("counter", {"topic"}),
    "horolog_log_size_bytes": ("gauge", PLACE),
    "horolog_log_segments": ("gauge", PLACE),
    "horolog_fsync_duration_seconds": ("histogram", set()),
    "horolog_disk_free_bytes": ("gauge", set()),
    "horolog_event_loop_idle_ratio": ("gauge", set()),
    "process_open_fds": ("gauge", set()),
    "process_resident_memory_bytes": ("gauge", set()),
}
METER = ("counter", {"topic"})
STRIMZI: Mapping[str, tuple[str, set[str]]] = {
    **{
        f"kafka_server_brokertopicmetrics_{bean}": METER
        for bean in (
            "bytesin",
            "bytesout",
            "messagesin",
            "totalproducerequests",
            "failedproducerequests",
            "totalfetchrequests",
            "failedfetchrequests",
        )
    },
    "kafka_server_replicamanager_leadercount": ("gauge", set()),
    "kafka_server_replicamanager_partitioncount": ("gauge", set()),
    "kafka_server_replicamanager_underreplicatedpartitions": ("gauge", set()),
    "kafka_controller_kafkacontroller_activecontrollercount": ("gauge", set()),
    "kafka_controller_kafkacontroller_offlinepartitionscount": ("gauge", set()),
    "kafka_controller_controllerstats_uncleanleaderelections": ("counter", set()),
    "kafka_cluster_partition_atminisr": ("gauge", PLACE),
    "kafka_cluster_partition_underminisr": ("gauge", PLACE),
    "kafka_cluster_partition_replicascount": ("gauge", PLACE),
    "kafka_network_socketserver_networkprocessoravgidle_percent": ("gauge", set()),
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent": ("gauge", set()),
    "kafka_server_kafkaserver_linux_disk_read_bytes": ("gauge", set()),
    "kafka_server_kafkaserver_linux_disk_write_bytes": ("gauge", set()),
    "kafka_server_socket_server_metrics_connection_count": (
        "gauge",
        {"listener", "networkProcessor"},
    ),
    "kafka_log_log_size": ("gauge", PLACE),
    "process_open_fds": ("gauge", set()),
}
THEIR_PLACE = {"consumergroup", "topic", "partition"}
EXPORTER: Mapping[str, tuple[str, set[str]]] = {
    "kafka_brokers": ("gauge", set()),
    "kafka_broker_info": ("gauge", {"id", "address"}),
    "kafka_topic_partitions": ("gauge", {"topic"}),
    **{
        f"kafka_topic_partition_{name}": ("gauge", PLACE)
        for name in (
            "current_offset",
            "oldest_offset",
            "in_sync_replica",
            "leader",
            "leader_is_preferred",
            "replicas",
            "under_replicated_partition",
        )
    },
    "kafka_consumergroup_members": ("gauge", {"consumergroup"}),
    "kafka_consumergroup_current_offset": ("gauge", THEIR_PLACE),
    "kafka_consumergroup_current_offset_sum": ("gauge", {"consumergroup", "topic"}),
    "kafka_consumergroup_lag": ("gauge", THEIR_PLACE),
    "kafka_consumergroup_lag_sum": ("gauge", {"consumergroup", "topic"}),
    "kafka_consumergroup_uncommitted_offsets": ("gauge", THEIR_PLACE),
    "kafka_consumer_lag_millis": ("gauge", THEIR_PLACE),
}
NOT_OURS_TO_NAME = {
    "kafka_consumergroup_current_offset_sum",
    "kafka_consumergroup_lag_sum",
    "kafka_server_socket_server_metrics_connection_count",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedBroker]:
    """One that everything has happened to: bad times, a group, a topic that compacts."""
    settings = {"log.initial.task.delay.ms": "0", "log.retention.check.interval.ms": "500"}
    with WatchedBroker(tmp_path_factory.mktemp("scraped") / "data", settings) as broker:
        broker.make_topic("t", horolog_timestamp_policy="accept")
        broker.make_topic("c", cleanup_policy="compact", max_compaction_lag_ms="3600000")
        with broker.client() as client:
            assert produce_to(client, small_batch(b"a")).error_code == 0
            seconds_for_ms = build_batch([(int(time.time()), b"key", b"value")])
            assert produce_to(client, seconds_for_ms).error_code == 0
            assert produce_to(client, b"no batch").error_code != 0
        group = {"bootstrap.servers": broker.process.bootstrap, "group.id": "g", "logger": None}
        consumer = Consumer(group)
        consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
        consumer.close()
        broker.wait_for("horolog_log_oldest_timestamp_seconds")
        yield broker


def scraped(broker: WatchedBroker, path: str) -> str:
    with urllib.request.urlopen(f"http://{broker.process.facts['http']}/{path}") as answer:
        text: str = answer.read().decode()
    return text


def families(text: str) -> dict[str, Metric]:
    """By name; counters without `_total`, as the library has them. Each name comes once."""
    found = list(text_string_to_metric_families(text))
    by_name = {each.name: each for each in found}
    assert len(by_name) == len(found)
    return by_name


@pytest.mark.parametrize(
    ("path", "promised"),
    [
        ("metrics", TIME),
        ("metrics", USUAL),
        ("metrics/kafka", STRIMZI),
        ("metrics/kafka", EXPORTER),
    ],
    ids=["time", "usual", "strimzi", "kafka_exporter"],
)
def test_every_promised_metric_is_there_with_its_type_and_labels(
    broker: WatchedBroker, path: str, promised: Mapping[str, tuple[str, set[str]]]
) -> None:
    served = families(scraped(broker, path))
    assert promised.keys() <= served.keys()
    for name, (kind, labels) in promised.items():
        family = served[name]
        assert family.type == kind, name
        assert family.samples, f"{name} has no sample though its occasion has come"
        assert {key for sample in family.samples for key in sample.labels} - {"le"} == labels, name


def test_the_names_of_others_say_the_same_as_our_own(broker: WatchedBroker) -> None:
    theirs = families(scraped(broker, "metrics/kafka"))

    def value(name: str, **labels: str) -> float:
        (found,) = [s.value for s in theirs[name].samples if s.labels == labels]
        return found

    place = {"topic": "t", "partition": "0"}
    assert value("kafka_topic_partition_current_offset", **place) == 2
    assert value("kafka_consumergroup_lag", consumergroup="g", **place) == 1
    assert value("kafka_consumergroup_lag_sum", consumergroup="g", topic="t") == 1
    assert value("kafka_consumergroup_current_offset", consumergroup="g", **place) == 1
    meter = "kafka_server_brokertopicmetrics_"
    assert value(f"{meter}totalproducerequests", topic="t") == 3
    assert value(f"{meter}failedproducerequests", topic="t") == 1
    assert value(f"{meter}messagesin", topic="t") == 2
    everything = sum(
        sample.value for sample in theirs[f"{meter}messagesin"].samples if sample.labels["topic"]
    )
    assert value(f"{meter}messagesin", topic="") == everything
    assert value("kafka_cluster_partition_underminisr", **place) == 0


@needs_promtool
def test_promtool_finds_nothing_to_say_about_our_names(broker: WatchedBroker) -> None:
    assert lint(scraped(broker, "metrics")) == []


@needs_promtool
def test_promtool_dislikes_only_what_others_named(broker: WatchedBroker) -> None:
    found = {line.split()[0] for line in lint(scraped(broker, "metrics/kafka"))}
    assert found == NOT_OURS_TO_NAME


def lint(text: str) -> list[str]:
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    return [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]


def test_names_of_topics_and_groups_cannot_break_a_line(tmp_path: Path) -> None:
    hostile = 'g"} 1\n# TYPE up gauge\nup{x="\\'
    with WatchedBroker(tmp_path / "data") as broker:
        broker.make_topic("t")
        settings = {"bootstrap.servers": broker.process.bootstrap, "group.id": hostile}
        consumer = Consumer({**settings, "logger": None})
        consumer.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
        consumer.close()
        for path, name, label in (
            ("metrics", "horolog_consumer_lag_records", "group"),
            ("metrics/kafka", "kafka_consumergroup_lag", "consumergroup"),
        ):
            served = families(scraped(broker, path))
            assert "up" not in served
            (sample,) = served[name].samples
            assert sample.labels[label] == hostile
