"""Kafka's own tools on groups: describe, list, delete, reset, offsets deleted, records dumped."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import NO_RETENTION, create_topic
from tests.conformance.test_group_clients import QUICK, confluent, share, until
from tests.support.kafka.kafka_oracle import DUMP_TOOL, OFFSETS_TOOL, available, run_tool
from tests.support.worlds.broker_process import start_broker

EXERCISES = {
    "Kafka's command-line tools": "consumer-groups with reset by time, dump-log",
}

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TOPIC, COUNT = "t", 20
FIRST_MS, STEP_MS = 1_700_000_000_000, 60_000  # 2023-11-14T22:13:20Z, a record a minute


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tools") / "data"


@pytest.fixture(scope="module")
def node(data: Path) -> Iterator[str]:
    """A broker with a topic of four partitions and a group that has read half of it."""
    with start_broker(data, {**QUICK, **NO_RETENTION}) as broker:
        create_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), TOPIC, 4)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(COUNT):
            for partition in range(4):
                at = FIRST_MS + number * STEP_MS
                producer.produce(TOPIC, b"%d" % number, partition=partition, timestamp=at)
        assert producer.flush(30) == 0
        yield broker.bootstrap


def commit(bootstrap: str, group: str, offset: int) -> None:
    with closing(confluent(bootstrap, group)) as consumer:
        offsets = [TopicPartition(TOPIC, number, offset) for number in range(4)]
        consumer.commit(offsets=offsets, asynchronous=False)


def tool(bootstrap: str, *arguments: str) -> str:
    return run_tool(GROUPS_TOOL, "--bootstrap-server", bootstrap, *arguments)


def rows_of(described: str) -> list[list[str]]:
    """The table's rows of our topic."""
    return [line.split() for line in described.splitlines() if f" {TOPIC} " in line]


def test_groups_are_listed_and_described_with_their_members(node: str) -> None:
    with closing(confluent(node, "busy", client_id="worker")) as member:
        member.subscribe([TOPIC])
        until(share([member]), "it has all partitions")
        member.commit(
            offsets=[TopicPartition(TOPIC, number, 12) for number in range(4)], asynchronous=False
        )
        listed = tool(node, "--list", "--state")
        assert re.search(r"busy\s+Classic\s+Stable|busy\s+Stable", listed), listed
        rows = rows_of(tool(node, "--describe", "--group", "busy"))
        assert [row[2:6] for row in rows] == [[str(n), "12", "20", "8"] for n in range(4)]
        assert {row[8] for row in rows} == {"worker"}
        members = tool(node, "--describe", "--group", "busy", "--members", "--verbose")
        assert "/127.0.0.1" in members
        assert re.search(r"t[:(].*0.*1.*2.*3", members), members
        state = tool(node, "--describe", "--group", "busy", "--state")
        assert re.search(r"range\s+Stable\s+1", state), state


def test_a_group_is_reset_by_time_and_deleted(node: str) -> None:
    commit(node, "idle", 12)
    at = "2023-11-14T22:18:20.000"  # FIRST_MS and five minutes
    of = ("--group", "idle", "--topic", TOPIC)
    reset = tool(node, "--reset-offsets", *of, "--to-datetime", at, "--execute")
    assert [row[-1] for row in rows_of(reset)] == ["5"] * 4, reset
    rows = rows_of(tool(node, "--describe", "--group", "idle"))
    assert [row[2:6] for row in rows] == [[str(n), "5", "20", "15"] for n in range(4)]
    reset = tool(node, "--reset-offsets", *of, "--shift-by", "-2", "--dry-run")
    assert [row[-1] for row in rows_of(reset)] == ["3"] * 4
    tool(node, "--delete-offsets", "--group", "idle", "--topic", f"{TOPIC}:1")
    rows = rows_of(tool(node, "--describe", "--group", "idle"))
    assert [row[2] for row in rows] == ["0", "2", "3"]
    assert "successful" in tool(node, "--delete", "--group", "idle")
    assert "idle" not in tool(node, "--list").split()


def test_the_dump_tool_reads_what_groups_are_remembered_by(node: str, data: Path) -> None:
    commit(node, "dumped", 7)
    of = ("--topic", "__consumer_offsets", "--time", "latest")
    offsets = run_tool(OFFSETS_TOOL, "--bootstrap-server", node, *of)
    ends = dict(re.findall(r"__consumer_offsets:(\d+):(\d+)", offsets))
    assert sum(map(int, ends.values())) > 0
    dumped = ""
    for number, end in ends.items():
        if end != "0":
            path = data / f"__consumer_offsets-{number}" / "00000000000000000000.log"
            dumped += run_tool(DUMP_TOOL, "--files", str(path), "--offsets-decoder")
    assert re.search(r'"group":"dumped","topic":"t","partition":3.*"offset":7', dumped), dumped
