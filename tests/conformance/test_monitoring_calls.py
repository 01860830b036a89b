"""Monitoring tools and consoles: two that run here as they are, and the calls of three that cannot.

The Kafka receiver of the OpenTelemetry Collector and Kaskade, a console in the terminal, run whole.
kminion and Redpanda Console are built on franz-go, kafka_exporter on sarama: these libraries ask
here what those tools ask, and derive what they derive.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import NO_RETENTION, create_topic
from tests.conformance.test_group_clients import QUICK
from tests.support.clients.go_programs import built_program, go
from tests.support.clients.python_tools import python_with
from tests.support.worlds.broker_process import start_broker

EXERCISES = {
    "franz-go": "what kminion and Redpanda Console ask",
    "sarama": "what kafka_exporter asks",
    "OpenTelemetry Collector": "its Kafka receiver: offsets, lag, groups, replicas",
    "Kaskade": "topics with records, groups and lag in its table",
}

pytestmark = pytest.mark.timeout(700)
with_go = pytest.mark.skipif(go() is None, reason="there is no Go 1.26 here")
HERE = Path(__file__).parent
FOLDER = HERE / "go"
COLLECTOR = HERE / "go_collector"
KASKADE = "5.1.0"
TOPIC, GROUP, PARTITIONS, RECORDS, BEHIND = "watched", "watcher", 2, 30, 4
LIST_TRANSACTIONS = 66  # served up to version 1; version 2 filters by a pattern


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with a topic, and a group that is four records behind in each partition."""
    data = tmp_path_factory.mktemp("watched") / "data"
    with start_broker(data, {**QUICK, **NO_RETENTION}) as node:
        create_topic(AdminClient({"bootstrap.servers": node.bootstrap}), TOPIC, PARTITIONS)
        producer = Producer({"bootstrap.servers": node.bootstrap})
        for partition in range(PARTITIONS):
            for number in range(RECORDS):
                producer.produce(TOPIC, b"%d" % number, partition=partition)
        assert producer.flush(30) == 0
        consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": GROUP})
        offsets = [TopicPartition(TOPIC, number, RECORDS - BEHIND) for number in range(PARTITIONS)]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()
        yield node.bootstrap


def survey(library: str, bootstrap: str) -> Any:
    return told_by(built_program(FOLDER), library, "survey", bootstrap, TOPIC, GROUP)


def told_by(*command: str | Path) -> Any:
    """The JSON that a program prints."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@with_go
def test_kminion_and_console_find_a_version_sizes_and_lag(bootstrap: str) -> None:
    told = survey("franz-go", bootstrap)
    assert told["records"] == PARTITIONS * RECORDS
    assert told["lag"] == PARTITIONS * BEHIND
    assert told["bytes"] > PARTITIONS * RECORDS
    assert told["settings"] > 50
    assert told["moving"] == 0
    assert told["in_sync"] == 1
    assert told["internals"]
    assert set(told["unlike"]) <= {LIST_TRANSACTIONS}


@with_go
def test_the_guess_of_kminion_and_console_is_stable(bootstrap: str) -> None:
    """They guess by what is missing, and find nothing that every later Kafka has."""
    assert survey("franz-go", bootstrap)["guess"] == "at least v3.9"


@with_go
def test_the_exporter_finds_offsets_lag_groups_and_replicas(bootstrap: str) -> None:
    told = survey("sarama", bootstrap)
    assert told["records"] == PARTITIONS * RECORDS
    assert told["lag"] == PARTITIONS * BEHIND
    assert told["kind"] in {"", "consumer"}
    assert told["settings"] > 20
    assert told["quotas"] == 0
    assert told["in_sync"] == 1


@with_go
def test_the_collectors_receiver_finds_offsets_lag_groups_and_replicas(bootstrap: str) -> None:
    told = told_by(built_program(COLLECTOR), bootstrap, "2.8.0")
    for partition in range(PARTITIONS):
        place = f"partition={partition} topic={TOPIC}"
        assert told[f"kafka.partition.current_offset {place}"] == RECORDS
        assert told[f"kafka.partition.oldest_offset {place}"] == 0
        assert told[f"kafka.partition.replicas_in_sync {place}"] == 1
        assert told[f"kafka.consumer_group.lag group={GROUP} {place}"] == BEHIND
    assert told[f"kafka.consumer_group.lag_sum group={GROUP} topic={TOPIC}"] == PARTITIONS * BEHIND
    assert told[f"kafka.consumer_group.members group={GROUP}"] == 0
    assert told["kafka.brokers"] == 1


def test_a_console_shows_records_groups_and_lag(bootstrap: str) -> None:
    shown = told_by(python_with("kaskade", KASKADE), HERE / "kaskade_screen.py", bootstrap, TOPIC)
    row = {name: re.sub(r"\D", "", cell) for name, cell in shown.items()}
    assert (row["Partitions"], row["Records"]) == (str(PARTITIONS), str(PARTITIONS * RECORDS))
    assert (row["Groups"], row["Lag"]) == ("1", str(PARTITIONS * BEHIND))
