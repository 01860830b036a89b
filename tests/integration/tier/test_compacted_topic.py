"""A compacted topic that outgrows its disk: real clients, a real store, and a topic without one."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from tests.integration.tier.test_tiered_broker import offset_of, settings, start, until
from tests.support.tier.s3_server import S3Server, only_aws, seaweedfs
from tests.support.worlds.broker_process import start_broker

COMPACTED = {"horolog.tier.compacted": "true", "log.cleaner.backoff.ms": "200"}
SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1024 * 1024),
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "0",
}
TIERED = {
    **SETTINGS,
    "remote.storage.enable": "true",
    "local.retention.bytes": str(1024 * 1024),
    "retention.bytes": str(1 << 40),
}
KEYS, WRITES, VALUE_BYTES = 1500, 6000, 2000
MOST = 2 * KEYS * VALUE_BYTES
"""Bytes of a compacted topic, and what was not compacted yet."""
T0 = 1_790_000_000_000
MAX_TIMESTAMP, EARLIEST_LOCAL = -3, -4


class Stored(NamedTuple):
    """A record as a consumer gets it."""

    offset: int
    time_ms: int
    key: bytes
    value: bytes | None


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with seaweedfs() as running:
        yield running


def make_topic(bootstrap: str, name: str, config: dict[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result(30)


def write(bootstrap: str, topics: Sequence[str], seed: int, count: int = WRITES) -> None:
    """The same records into each: few keys, values and tombstones, times in disorder."""
    dice = random.Random(seed)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 5})
    for number in range(count):
        key = b"%d" % dice.randrange(KEYS)
        value = None if dice.random() < 0.1 else dice.randbytes(VALUE_BYTES)
        at = T0 + number * 100 + dice.randrange(-3000, 3000)
        for topic in topics:
            producer.produce(topic, value, key, timestamp=at)
        producer.poll(0)
    assert producer.flush(60) == 0


def read(bootstrap: str, topic: str) -> list[Stored]:
    """All of it, from the start to the end that it has now."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    partition = TopicPartition(topic, 0, 0)
    _, end = consumer.get_watermark_offsets(partition, timeout=30)
    consumer.assign([partition])
    found: list[Stored] = []
    ends = time.monotonic() + 60
    while consumer.position([partition])[0].offset < end:
        assert time.monotonic() < ends, "the end never comes"
        for message in consumer.consume(1000, 1):
            assert message.error() is None, message.error()
            offset, key = message.offset(), message.key()
            assert offset is not None
            assert key is not None
            value = message.value()
            found.append(Stored(offset, message.timestamp()[1], bytes(key), value and bytes(value)))
    consumer.close()
    return found


def latest(records: Sequence[Stored]) -> dict[bytes, bytes | None]:
    """Values by key, deleted ones left out."""
    last = {each.key: each.value for each in records}
    return {key: value for key, value in last.items() if value is not None}


def stored_bytes(server: S3Server, prefix: str) -> Callable[[], int]:
    store = server.open(prefix)

    def count() -> int:
        found = store.list("topics/tiered/")
        return sum(each.size_bytes for each in found if each.key.endswith(".log"))

    return count


def wait_until_compacted(bootstrap: str, in_store: Callable[[], int], beyond: int) -> None:
    """Until the disk has nothing from before an offset, and the store little of it."""

    def holds() -> bool:
        local = offset_of(bootstrap, "tiered", EARLIEST_LOCAL)[1]
        return local > beyond and 0 < in_store() < MOST

    until(holds, "nothing leaves the disk, or is compacted in the store")


def test_its_contents_are_those_of_a_topic_without_a_tier(server: S3Server, tmp_path: Path) -> None:
    with start(server, tmp_path / "data", **COMPACTED) as broker:
        make_topic(broker.bootstrap, "tiered", TIERED)
        make_topic(broker.bootstrap, "alone", SETTINGS)
        in_store = stored_bytes(server, tmp_path.name)
        for seed in range(3):
            write(broker.bootstrap, ("tiered", "alone"), seed)
            wait_until_compacted(broker.bootstrap, in_store, WRITES * seed)
        tiered, alone = read(broker.bootstrap, "tiered"), read(broker.bootstrap, "alone")
        assert latest(tiered) == latest(alone)
        assert len(tiered) < WRITES
        assert {each.offset for each in tiered} <= set(range(3 * WRITES))
        _judge_times(broker.bootstrap, tiered)
        broker.kill()
    with start(server, tmp_path / "data", **COMPACTED) as broker:
        assert latest(read(broker.bootstrap, "tiered")) == latest(alone)


def _judge_times(bootstrap: str, records: Sequence[Stored]) -> None:
    """Each answer is the first record that has the time."""
    times = [each.time_ms for each in records]
    largest = max(times)
    first = next(each.offset for each in records if each.time_ms == largest)
    assert offset_of(bootstrap, "tiered", MAX_TIMESTAMP) == (0, first)
    for wanted in (*times[::40], T0, largest):
        first = next(each.offset for each in records if each.time_ms >= wanted)
        assert offset_of(bootstrap, "tiered", wanted) == (0, first)


def test_a_store_that_stands_still_stops_the_cleaning_of_no_other_topic(
    server: S3Server, tmp_path: Path
) -> None:
    with start(server, tmp_path / "data", **COMPACTED) as broker:
        make_topic(broker.bootstrap, "tiered", TIERED)
        make_topic(broker.bootstrap, "alone", SETTINGS)
        write(broker.bootstrap, ["tiered"], 1)
        in_store = stored_bytes(server, tmp_path.name)
        wait_until_compacted(broker.bootstrap, in_store, 0)
        with server.frozen():
            write(broker.bootstrap, ("tiered", "alone"), 2)
            directory = tmp_path / "data" / "alone-0"
            until(lambda: _bytes_in(directory) < MOST, "the other topic waits for the store")
        write(broker.bootstrap, ["tiered"], 3, 400)
        wait_until_compacted(broker.bootstrap, in_store, WRITES)


def test_a_run_without_the_store_is_named_and_keeps_no_other_log_waiting(
    server: S3Server, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    all_stays = {"min.cleanable.dirty.ratio": "1"}
    with start(server, data, **COMPACTED) as broker:
        for name, each in (("tiered", TIERED), ("alone", SETTINGS)):
            make_topic(broker.bootstrap, name, {**each, **all_stays})
        write(broker.bootstrap, ("tiered", "alone"), 1)
        until(
            lambda: offset_of(broker.bootstrap, "tiered", EARLIEST_LOCAL)[1] > 1000,
            "nothing leaves",
        )
        broker.stop()
    log, directory = tmp_path / "away.log", data / "alone-0"
    with only_aws({**server.environment, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}):
        broker = start_broker(data, {**settings(server, tmp_path.name), **COMPACTED}, log=log)
    with broker:
        for name in ("tiered", "alone"):
            alter(broker.bootstrap, name, "min.cleanable.dirty.ratio", "0.01")
        until(lambda: "event=log_not_cleaned" in log.read_text(), "nothing tells of it")
        until(lambda: _bytes_in(directory) < MOST, "the other topic waits for the store")
        broker.stop()
    with start(server, data, **COMPACTED) as broker:
        wait_until_compacted(broker.bootstrap, stored_bytes(server, tmp_path.name), 1000)
        assert latest(read(broker.bootstrap, "tiered")) == latest(read(broker.bootstrap, "alone"))


def alter(bootstrap: str, topic: str, key: str, value: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    change = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([change])[change].result(30)


def _bytes_in(directory: Path) -> int:
    """Of its segments; one that compaction takes away meanwhile has none."""
    size = 0
    for each in directory.glob("*.log"):
        with suppress(FileNotFoundError):
            size += each.stat().st_size
    return size


def test_it_is_refused_unless_the_broker_allows_it(server: S3Server, tmp_path: Path) -> None:
    with start(server, tmp_path / "data") as broker, pytest.raises(KafkaException) as refused:
        make_topic(broker.bootstrap, "tiered", TIERED)
    assert "Remote log storage only supports topics with cleanup.policy=delete" in str(
        refused.value
    )
