"""Questions about many brokers and many disks, to a real Kafka 4.3 and to us, who each have one."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient

from protocol.apis import alter_replica_log_dirs as moving
from protocol.apis import describe_log_dirs
from protocol.apis import describe_quorum as quorum
from tests.conformance.conftest import create_topic
from tests.support.clients.wire import WireClient
from tests.support.kafka.kafka_oracle import available, run_tool, start_kafka
from tests.support.worlds.broker_process import start_broker

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
METADATA = "__cluster_metadata"
HERE = "<its own directory>"
MOVES = [
    [(HERE, "t", [0])],
    [(HERE, "t", [0, 1, 2])],
    [("/elsewhere", "t", [0])],
    [("/elsewhere", "absent", [0])],
    [(HERE, "absent", [0])],
    [("relative", "t", [0])],
    [("", "t", [0])],
    [(HERE + "/", "t", [0])],
    [(HERE, "t", [0]), ("/elsewhere", "t", [1])],
    [("/elsewhere", "t", [0]), (HERE, "t", [0])],
    [(HERE, "t", [])],
    [],
]
QUESTIONS = [
    [(METADATA, [0])],
    [(METADATA, [1])],
    [(METADATA, [0, 1])],
    [(METADATA, [])],
    [("t", [0])],
    [(METADATA, [0]), ("t", [0])],
    [],
]


class Side(NamedTuple):
    """A broker with a topic `t` of two partitions."""

    bootstrap: str
    wire: WireClient

    @property
    def directory(self) -> str:
        """Its log directory, as it calls it."""
        request = describe_log_dirs.DescribeLogDirsRequest(topics=None)
        return str(self.wire.call(request, 4).results[0].log_dir)

    def moved(self, move: list[tuple[str, str, list[int]]], version: int) -> Any:
        """Codes by topic and partition."""
        dirs = []
        for path, name, partitions in move:
            topic = moving.AlterReplicaLogDirTopic(name=name, partitions=partitions)
            place = path.replace(HERE, self.directory)
            dirs.append(moving.AlterReplicaLogDir(path=place, topics=[topic]))
        answer = self.wire.call(moving.AlterReplicaLogDirsRequest(dirs=dirs), version)
        return sorted(
            (topic.topic_name, part.partition_index, part.error_code)
            for topic in answer.results
            for part in topic.partitions
        )

    def described(self, asked: list[tuple[str, list[int]]], version: int) -> Any:
        """The answer, without what is each broker's own: numbers of its log, times, addresses."""
        topics = [
            quorum.QuorumTopic(
                topic_name=name,
                partitions=[quorum.QuorumPartition(partition_index=each) for each in partitions],
            )
            for name, partitions in asked
        ]
        answer = self.wire.call(quorum.DescribeQuorumRequest(topics=topics), version)
        parts = [
            (topic.topic_name, part.partition_index, part.error_code, part.error_message,
             part.leader_id, [voter.replica_id for voter in part.current_voters],
             [voter.last_fetch_timestamp > 0 for voter in part.current_voters],
             [voter.last_caught_up_timestamp > 0 for voter in part.current_voters],
             len(part.observers), part.high_watermark < 0, part.leader_epoch < 0)
            for topic in answer.topics
            for part in topic.partitions
        ]  # fmt: skip
        nodes = [(each.node_id, len(each.listeners)) for each in answer.nodes]
        return answer.error_code, answer.error_message, parts, nodes


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    base: Path = tmp_path_factory.mktemp("one")
    with ExitStack() as stack:
        found = []
        for node in (start_kafka(base / "kafka"), start_broker(base / "ours")):
            running = stack.enter_context(node)
            create_topic(AdminClient({"bootstrap.servers": running.bootstrap}), "t", 2)
            host, _, port = running.bootstrap.rpartition(":")
            side = Side(running.bootstrap, stack.enter_context(WireClient(host, int(port))))
            assert side.directory  # who asks nothing within a minute is not kept
            found.append(side)
        yield found[0], found[1]


@pytest.mark.parametrize("version", [1, 2])
def test_replicas_move_as_in_a_kafka_with_one_directory(
    sides: tuple[Side, Side], version: int
) -> None:
    for move in MOVES:
        kafka, ours = (each.moved(move, version) for each in sides)
        assert ours == kafka, move


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_quorum_is_described_as_by_a_kafka_that_stands_alone(
    sides: tuple[Side, Side], version: int
) -> None:
    for asked in QUESTIONS:
        kafka, ours = (each.described(asked, version) for each in sides)
        assert ours == kafka, asked


def test_the_tools_of_kafka_read_it(sides: tuple[Side, Side]) -> None:
    tool = "org.apache.kafka.tools.MetadataQuorumCommand"
    for what in ("--status", "--replication"):
        kafka, ours = (
            run_tool(tool, "--bootstrap-server", each.bootstrap, "describe", what) for each in sides
        )
        assert labels(ours) == labels(kafka)
        assert "Leader" in ours


FEATURES = (
    ("upgrade", "--feature", "share.version=1"),
    ("upgrade", "--feature", "share.version=1", "--dry-run"),
    ("upgrade", "--metadata", "4.3-IV0"),
    ("downgrade", "--feature", "group.version=1"),
    ("upgrade", "--feature", "group.version=1", "--feature", "transaction.version=2"),
)
REFUSED = (
    ("upgrade", "--feature", "none=1"),
    ("upgrade", "--feature", "group.version=5"),
    ("downgrade", "--metadata", "4.2-IV1"),
)


def test_the_tool_of_features_says_the_same(sides: tuple[Side, Side]) -> None:
    tool = "org.apache.kafka.tools.FeatureCommand"
    for what in FEATURES:
        kafka, ours = (run_tool(tool, "--bootstrap-server", each.bootstrap, *what)
                       for each in sides)  # fmt: skip
        assert ours == kafka, what
        assert "share" in ours or "group" in ours or "metadata" in ours
    for what in REFUSED:
        for each in sides:
            with pytest.raises(
                AssertionError, match=r"Could not \w+ [\w.]+ to \d+\.(?s:.*)1 out of 1"
            ):
                run_tool(tool, "--bootstrap-server", each.bootstrap, *what)
    kafka, ours = (levels(each) for each in sides)
    assert ours.items() <= kafka.items()
    assert len(ours) == 5


def levels(side: Side) -> dict[str, list[str]]:
    """The levels of each feature as the tool lists them, without the epoch."""
    tool = "org.apache.kafka.tools.FeatureCommand"
    listed = run_tool(tool, "--bootstrap-server", side.bootstrap, "describe")
    rows = [line.split() for line in listed.splitlines()]
    return {row[1]: row[2:8] for row in rows}


def test_a_feature_keeps_its_level(sides: tuple[Side, Side]) -> None:
    before = levels(sides[1])
    lower = ("downgrade", "--feature", "share.version=0")
    with pytest.raises(AssertionError, match=r"share.version stays at 1"):
        run_tool("org.apache.kafka.tools.FeatureCommand", "--bootstrap-server",
                 sides[1].bootstrap, *lower)  # fmt: skip
    assert levels(sides[1]) == before


def labels(text: str) -> list[str]:
    """What is said, without the values."""
    return [line.replace("\\t", " ").split(":")[0].split(" ")[0] for line in text.splitlines()][
        :1
    ] + [line.partition(":")[0] for line in text.splitlines() if ":" in line]
