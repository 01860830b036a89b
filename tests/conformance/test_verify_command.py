"""`horolog verify` finds nothing wrong in what a real Kafka wrote, nor in what ours did, whether it
was stopped, killed, or is at work.
"""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.conformance.conftest import NO_RETENTION, create_topic
from tests.conformance.variety import AdminClient, fill
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.worlds.broker_process import HOROLOG, start_broker
from tests.support.worlds.node_process import NodeProcess


def verify(directory: Path) -> dict[str, Any]:
    """Reports by partition; status 0."""
    done = subprocess.run(
        [HOROLOG, "verify", "--json", directory], capture_output=True, text=True, check=False
    )
    reports = {row["partition"]: row for row in map(json.loads, done.stdout.splitlines())}
    wrong = {name: row["findings"] for name, row in reports.items() if row["verdict"] != "sound"}
    assert (wrong, done.returncode, done.stderr) == ({}, 0, "")
    return reports


def commit_and_abort(bootstrap: str) -> None:
    """Transactions of two producers, interleaved, some of them aborted, over several segments."""
    topic = create_topic(
        AdminClient({"bootstrap.servers": bootstrap}), "deals", segment_bytes="1048576"
    )
    producers = [
        Producer({"bootstrap.servers": bootstrap, "transactional.id": name}) for name in "ab"
    ]
    for producer in producers:
        producer.init_transactions(60)
    for turn in range(12):
        for producer in producers:
            producer.begin_transaction()
            for each in range(20):
                producer.produce(topic, value=b"%d " % each * 2000)
            producer.flush(60)
        for number, producer in enumerate(producers):
            if (turn + number) % 3:
                producer.commit_transaction(60)
            else:
                producer.abort_transaction(60)


def start_ours(directory: Path) -> NodeProcess:
    return start_broker(directory, NO_RETENTION)


def start_theirs(directory: Path) -> NodeProcess:
    return start_kafka(directory, NO_RETENTION)


KAFKA = pytest.param(
    start_theirs,
    marks=[
        pytest.mark.kafka,
        pytest.mark.skipif(not available(), reason="needs java and mvn"),
    ],
    id="kafka",
)


@pytest.mark.parametrize("start", [pytest.param(start_ours, id="horolog"), KAFKA])
def test_a_node_s_directory_is_sound_while_it_works_when_killed_and_when_stopped(
    tmp_path: Path, start: Callable[[Path], NodeProcess]
) -> None:
    directory = tmp_path / "data"
    with start(directory) as node:
        topics = fill(node.bootstrap)
        if start is start_theirs:
            commit_and_abort(node.bootstrap)
            topics["deals"] = 1
        verify(directory)
        node.kill()
    verify(directory)
    with start(directory) as node:
        pass
    reports = verify(directory)
    assert {f"{name}-{i}" for name, count in topics.items() for i in range(count)} <= set(reports)
    assert all(row["is_clean"] for row in reports.values())
    proved = [row["proved"] for row in reports.values()]
    assert sum(row["records"] for row in proved) > 14_000
    assert sum(row["offset_entries"] for row in proved) > 50
    assert sum(row["time_entries_max"] for row in proved) > 50
    if start is start_theirs:
        assert reports["deals-0"]["proved"]["aborted_transactions"] == 8
        assert reports["deals-0"]["proved"]["segments"] > 1
    else:
        assert sum(row["zones"] for row in proved) > 50
