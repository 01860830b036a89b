"""Partitions move between a real Kafka and us as files, and serve the same records there."""

import shutil
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import create_topic, start_node
from tests.conformance.variety import CUT_TOPIC, everything, fill, offsets_by_time, topics_on
from tests.support.kafka_oracle import available, start_kafka
from tests.support.node_process import NodeProcess

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]


def replace_files(source: Path, target: Path, topics: dict[str, int]) -> None:
    """Puts the files of each partition in place of the target's; its identity stays."""
    for topic, partitions in topics.items():
        for name in (f"{topic}-{partition}" for partition in range(partitions)):
            for path in (target / name).iterdir():
                if path.name != "partition.metadata":
                    path.unlink()
            for path in (source / name).iterdir():
                if path.name != "partition.metadata":
                    shutil.copy2(path, target / name)


def same_checkpoints(source: Path, target: Path) -> None:
    """Log starts that lie inside a segment are kept outside the partition's directory."""
    shutil.copy2(source / "log-start-offset-checkpoint", target)


def facts(node: NodeProcess, topics: dict[str, int]) -> tuple[object, object]:
    return everything(node.bootstrap, topics), offsets_by_time(node.bootstrap, topics)


def test_kafka_serves_the_partitions_that_we_wrote(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    with start_node(ours) as node:
        topics = fill(node.bootstrap)
        before = facts(node, topics)
    with start_kafka(theirs) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for topic, partitions in topics.items():
            create_topic(admin, topic, partitions)
    replace_files(ours, theirs, topics)
    same_checkpoints(ours, theirs)
    with start_kafka(theirs) as kafka:
        assert facts(kafka, topics) == before


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_we_serve_the_directory_that_kafka_wrote(tmp_path: Path, end: str) -> None:
    directory = tmp_path / "data"
    with start_kafka(directory) as kafka:
        topics = fill(kafka.bootstrap)
        if end == "killed":
            del topics[CUT_TOPIC]  # where a log starts is on disk a minute later
        before = facts(kafka, topics)
        if end == "killed":
            kafka.kill()
    with start_node(directory) as node:
        assert topics_on(node.bootstrap).items() >= topics.items()
        assert facts(node, topics) == before
