"""Kafka's own command-line tools talk to the broker as administrators do."""

import re

import pytest

from tests.conformance.conftest import MakeTopic
from tests.conformance.samples import FIRST_TIME_MS, samples
from tests.conformance.test_confluent_client import produce
from tests.support.kafka.kafka_oracle import (
    CONFIGS_TOOL,
    OFFSETS_TOOL,
    TOPICS_TOOL,
    available,
    run_tool,
)

EXERCISES = {
    "Kafka's command-line tools": "topics, configs",
}

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]


def test_topics_are_made_grown_described_and_deleted(bootstrap: str) -> None:
    at, topic = ("--bootstrap-server", bootstrap), ("--topic", "by-tool")
    run_tool(
        TOPICS_TOOL, *at, *topic, "--create", "--partitions", "2", "--config", "retention.ms=99000"
    )
    run_tool(TOPICS_TOOL, *at, *topic, "--alter", "--partitions", "3")
    described = run_tool(TOPICS_TOOL, *at, *topic, "--describe")
    assert re.search(
        r"PartitionCount: 3\s+ReplicationFactor: 1\s+Configs: .*retention\.ms=99000", described
    )
    assert described.count("Leader: ") == 3
    assert "by-tool" in run_tool(TOPICS_TOOL, *at, "--list").split()
    run_tool(TOPICS_TOOL, *at, *topic, "--delete")
    assert "by-tool" not in run_tool(TOPICS_TOOL, *at, "--list").split()


def test_settings_are_altered_and_described(bootstrap: str, make_topic: MakeTopic) -> None:
    of = ("--bootstrap-server", bootstrap, "--entity-type", "topics", "--entity-name", make_topic())
    run_tool(CONFIGS_TOOL, *of, "--alter", "--add-config", "retention.ms=77000,segment.ms=5000")
    assert "retention.ms=77000" in run_tool(CONFIGS_TOOL, *of, "--describe")
    run_tool(CONFIGS_TOOL, *of, "--alter", "--delete-config", "retention.ms")
    described = run_tool(CONFIGS_TOOL, *of, "--describe")
    assert "retention.ms" not in described
    assert "segment.ms=5000" in described
    everything = run_tool(CONFIGS_TOOL, *of, "--describe", "--all")
    assert "DEFAULT_CONFIG:log.retention" in everything or "retention.ms=604800000" in everything


def test_broker_settings_change_while_it_runs(bootstrap: str) -> None:
    of = ("--bootstrap-server", bootstrap, "--entity-type", "brokers", "--entity-default")
    run_tool(CONFIGS_TOOL, *of, "--alter", "--add-config", "log.retention.ms=123456789")
    assert "log.retention.ms=123456789" in run_tool(CONFIGS_TOOL, *of, "--describe")
    run_tool(CONFIGS_TOOL, *of, "--alter", "--delete-config", "log.retention.ms")
    assert "123456789" not in run_tool(CONFIGS_TOOL, *of, "--describe")


def test_offsets_are_listed_by_kind_and_time(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    produce(bootstrap, topic, samples(50))
    of = ("--bootstrap-server", bootstrap, "--topic-partitions", f"{topic}:0", "--time")
    wanted = {
        "latest": 50,
        "earliest": 0,
        "max-timestamp": 49,
        "-1": 50,
        "-2": 0,
        str(FIRST_TIME_MS + 125): 13,
    }
    for time, offset in wanted.items():
        assert run_tool(OFFSETS_TOOL, *of, time) == f"{topic}:0:{offset}\n"


def test_all_settings_of_the_broker_have_the_units_of_times(bootstrap: str) -> None:
    of = ("--bootstrap-server", bootstrap, "--entity-type", "brokers", "--entity-name", "1")
    lines = run_tool(CONFIGS_TOOL, *of, "--describe", "--all").splitlines()
    told = {line.strip().split("=")[0]: line.strip() for line in lines}
    assert [told[f"log.retention.{unit}"] for unit in ("hours", "minutes", "ms")] == [
        "log.retention.hours=168 sensitive=false synonyms={DEFAULT_CONFIG:log.retention.hours=168}",
        "log.retention.minutes=null sensitive=false synonyms={}",
        "log.retention.ms=null sensitive=false synonyms={}",
    ]
    set_at_start = "STATIC_BROKER_CONFIG:log.initial.task.delay.ms=86400000"
    assert set_at_start in told["log.initial.task.delay.ms"]
