"""Spark's own Kafka connector, in batches, streams, by time and as a sink, sees what is there.

Record times are out of order, so that a range of time is what the connector makes of it: an offset
range, from the first record at or after each time (spark.md 2).
"""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.conformance.conftest import MakeTopic
from tests.support.kafka_oracle import available
from tests.support.spark_jars import available as jars_available

EXERCISES = {"Spark's Kafka connector": "batches, streams, by time, as a sink"}
PARTITIONS, COUNT = 3, 200  # records of each partition
BEGIN_MS, STEP_MS = 1_700_000_000_000, 1000
FIRST_MS, END_MS = BEGIN_MS + 60 * STEP_MS, BEGIN_MS + 140 * STEP_MS
ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(not find_spec("pyspark"), reason="PySpark is not installed"),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
    pytest.mark.skipif(not jars_available(), reason="the connector's jars cannot be fetched"),
]


def time_of(partition: int, number: int) -> int:
    """Every seventh record comes half a minute late."""
    late_ms = 30 * STEP_MS if number % 7 == partition else 0
    return BEGIN_MS + number * STEP_MS - late_ms


def fill(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4"})
    for partition in range(PARTITIONS):
        for number in range(COUNT):
            producer.produce(
                topic, b"value %d" % number, b"key %d" % (number % 5), partition=partition,
                timestamp=time_of(partition, number), headers=[("n", b"%d" % number)],
            )  # fmt: skip
    assert producer.flush(30) == 0


def plain(bootstrap: str, topic: str) -> list[list[Any]]:
    """All records of a topic as the job prints them."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "plain"})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found = []
    for _ in range(PARTITIONS * COUNT):
        message = consumer.poll(20)
        assert message is not None
        key, value, headers = message.key(), message.value(), message.headers()
        assert key is not None
        assert value is not None
        found.append([
            message.partition(), message.offset(), message.timestamp()[1], key.decode(),
            value.decode(), [f"{name}={text.decode()}" for name, text in headers or ()],
        ])  # fmt: skip
    consumer.close()
    return sorted(found)


def cut(records: list[list[Any]], first_ms: int, end_ms: int) -> list[list[Any]]:
    """The offset ranges between the first records at or after two times."""
    kept = []
    for partition in range(PARTITIONS):
        own = [each for each in records if each[0] == partition]
        begin = next(place for place, each in enumerate(own) if each[2] >= first_ms)
        end = next(place for place, each in enumerate(own) if each[2] >= end_ms)
        kept += own[begin:end]
    return kept


def test_the_connector_sees_what_a_plain_read_sees(
    bootstrap: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic, copy = make_topic(PARTITIONS), make_topic(PARTITIONS)
    fill(bootstrap, topic)
    records = plain(bootstrap, topic)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.conformance.spark_connector_job", bootstrap,
         topic, copy, str(FIRST_MS), str(END_MS), str(tmp_path)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=300, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-5000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["batch"] == said["stream"] == records
    assert said["between"] == cut(records, FIRST_MS, END_MS)
    assert 0 < len(said["between"]) < len(records)
    copied = sorted(each[3:] for each in plain(bootstrap, copy))
    assert copied == sorted(each[3:] for each in records)
