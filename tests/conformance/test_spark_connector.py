"""Spark's own Kafka connector in batches, streams, by time, as a sink, by SASL sees what is there.

Our source sees the same. Where record times are out of order, a range of time is what each makes of
it: the connector an offset range, from the first record at or after each time (docs/pipeline.md),
which misses records that came late and has some that are outside; ours every record of that time.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import create_topic
from tests.pipeline.test_secure_brokers import RECORDS, running
from tests.support.kafka.kafka_oracle import available
from tests.support.spark.spark_jars import available as jars_available

EXERCISES = {
    "Spark's Kafka connector": "batches, streams, by time, as a sink; by TLS and SCRAM with rights"
}
PARTITIONS, COUNT = 3, 200  # records of each partition
BEGIN_MS, STEP_MS = 1_700_000_000_000, 1000
FIRST_MS, END_MS = BEGIN_MS + 60 * STEP_MS, BEGIN_MS + 140 * STEP_MS
ROOT = Path(__file__).resolve().parents[2]
REFUSED = {
    '{"startingOffsets": {"TOPIC": {"0": 5}}}': True,
    '{"endingOffsets": {"TOPIC": {"0": 5, "1": 5}}}': True,
    '{"startingOffsets": {"TOPIC": {"0": 5, "1": 5, "2": 5, "3": 5}}}': True,
    '{"startingOffsets": {"TOPIC": {"0": 5, "1": 5, "2": 5}, "typo": {"0": 5}}}': True,
    '{"endingOffsets": {"typo": {"0": 5, "1": 5, "2": 5}}}': True,
    '{"startingOffsetsByTimestamp": {"TOPIC": {"0": 5, "1": 5}}}': True,
    '{"endingOffsetsByTimestamp": {"TOPIC": {"0": 5}, "typo": {"0": 5}}}': True,
    '{"startingOffsets": {"TOPIC": {"0": 5, "1": -2, "2": 7}}}': False,
    '{"startingOffsetsByTimestamp": {"TOPIC": {"0": 5, "1": 5, "2": 5}}}': False,
}
"""Options as JSON, and whether they are refused."""

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(not find_spec("pyspark"), reason="PySpark is not installed"),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
    pytest.mark.skipif(not jars_available(), reason="the connector's jars cannot be fetched"),
]


def late(partition: int, number: int) -> int:
    """Every seventh record comes half a minute late."""
    late_ms = 30 * STEP_MS if number % 7 == partition else 0
    return in_order(partition, number) - late_ms


def in_order(_: int, number: int) -> int:
    """A record a second."""
    return BEGIN_MS + number * STEP_MS


def fill(bootstrap: str, topic: str, time_of: Callable[[int, int], int]) -> None:
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


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The options of a user who may read one topic, and no group."""
    folder = tmp_path_factory.mktemp("secure")
    with running(folder) as broker:
        yield broker.options(
            "SASL_SSL-SCRAM-SHA-512", subscribe="in", includeHeaders="true",
            startingOffsets="earliest",
        )  # fmt: skip


@pytest.fixture(scope="module")
def seen(
    bootstrap: str,
    admin: AdminClient,
    secure: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    """What the connector and our source saw, and a plain consumer of the same topics."""
    topic, orderly, copy = (f"connector-{what}" for what in ("late", "in-order", "copy"))
    for name in (topic, orderly, copy):
        create_topic(admin, name, PARTITIONS)
    fill(bootstrap, topic, late)
    fill(bootstrap, orderly, in_order)
    folder = tmp_path_factory.mktemp("connector")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.conformance.spark_connector_job", bootstrap,
         topic, orderly, copy, str(FIRST_MS), str(END_MS), str(folder),
         json.dumps(list(REFUSED)), json.dumps(secure)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=300, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-5000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    plainly = {"late": topic, "in order": orderly, "copy": copy}
    return {**said, **{name: plain(bootstrap, each) for name, each in plainly.items()}}


def test_the_connector_sees_what_a_plain_read_sees(seen: dict[str, Any]) -> None:
    records = seen["late"]
    assert seen["batch"] == seen["stream"] == records
    assert seen["between"] == cut(records, FIRST_MS, END_MS)
    assert 0 < len(seen["between"]) < len(records)
    assert sorted(each[3:] for each in seen["copy"]) == sorted(each[3:] for each in records)


def test_both_read_by_tls_and_scram_with_the_right_to_read_alone(seen: dict[str, Any]) -> None:
    connector, ours = seen["secure"]
    assert ours == connector
    assert [each[1] for each in ours] == list(range(RECORDS))


def test_ours_equals_the_connector_where_times_are_in_order(seen: dict[str, Any]) -> None:
    assert seen["ours"]["columns"] == seen["columns"]
    assert seen["ours"]["batch"] == seen["batch"]
    connector, ours = seen["orderly"]
    assert ours == connector == within(seen["in order"])


def test_ours_is_exact_where_the_connector_is_not(seen: dict[str, Any]) -> None:
    exact = within(seen["late"])
    assert seen["ours"]["between"] == exact
    missed = [each for each in exact if each not in seen["between"]]
    outside = [each for each in seen["between"] if each not in exact]
    assert missed
    assert outside
    assert all(each[2] < FIRST_MS for each in outside), "late records of before the range"
    assert all(each[2] >= END_MS - 30 * STEP_MS for each in missed), "late ones, behind its end"


def test_ours_gives_the_connectors_range_when_asked_for(seen: dict[str, Any]) -> None:
    assert seen["ours"]["between offsets"] == seen["between"]


def test_ours_refuses_what_the_connector_refuses(seen: dict[str, Any]) -> None:
    """Partitions that are left out, and names that are mistyped, are never read from anywhere."""
    assert seen["refused"]["horolog"] == seen["refused"]["kafka"] == REFUSED


def within(records: list[list[Any]]) -> list[list[Any]]:
    """Records of the range, by each one's own time."""
    return [each for each in records if FIRST_MS <= each[2] < END_MS]
