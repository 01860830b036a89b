"""Partitions move between a real Kafka and us as files, and serve the same records there."""

import shutil
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from storage.files.checkpoints import SUM_NAME
from storage.files.layout import LOG_START_OFFSETS_FILE
from tests.conformance.conftest import NO_RETENTION, create_topic, start_node
from tests.conformance.variety import CUT_TOPIC, everything, fill, offsets_by_time, topics_on
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.worlds.node_process import NodeProcess

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


def facts(node: NodeProcess, topics: dict[str, int]) -> dict[str, object]:
    """One line for each record and each look-up by time, so that a difference is short.

    Where segments from before the log's start still lie about, Kafka looks into the first of them
    that has the time and then answers that there is nothing; we answer the first record after the
    start. So look-ups leave that topic out.
    """
    stored = everything(node.bootstrap, topics)
    found = offsets_by_time(node.bootstrap, {t: n for t, n in topics.items() if t != CUT_TOPIC})
    return {
        **{f"{at} {one.offset}": one.record for at, records in stored.items() for one in records},
        **{f"{at}": offset for at, offset in found.items()},
    }


def assert_same(there: dict[str, object], here: dict[str, object]) -> None:
    different = {
        at: (there.get(at), here.get(at))
        for at in there.keys() | here.keys()
        if there.get(at) != here.get(at)
    }
    assert not different


def test_kafka_serves_the_partitions_that_we_wrote(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    with start_node(ours, NO_RETENTION) as node:
        topics = fill(node.bootstrap)
        before = facts(node, topics)
    with start_kafka(theirs) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for topic, partitions in topics.items():
            create_topic(admin, topic, partitions)
    replace_files(ours, theirs, topics)
    same_checkpoints(ours, theirs)
    assert SUM_NAME in (theirs / LOG_START_OFFSETS_FILE).read_text()
    with start_kafka(theirs) as kafka:
        assert_same(before, facts(kafka, topics))
    kept = (theirs / LOG_START_OFFSETS_FILE).read_text()
    assert f"{CUT_TOPIC} 0 " in kept
    assert SUM_NAME not in kept  # else it would be held against offsets that Kafka has changed


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
    with start_node(directory, NO_RETENTION) as node:
        assert topics_on(node.bootstrap).items() >= topics.items()
        assert_same(before, facts(node, topics))
