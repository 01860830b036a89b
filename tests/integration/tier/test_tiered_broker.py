"""A broker whose closed segments go to a real object store, with clients that notice nothing."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from storage.tier.port import ObjectStore
from tests.support.clients.wire import WireClient
from tests.support.tier.s3_server import S3Server, only_aws, seaweedfs
from tests.support.worlds.broker_process import HOROLOG, start_broker

RECORDS, VALUE_BYTES = 6000, 1000
EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -2, -4, -5, -6
TOPIC_SETTINGS = {
    "remote.storage.enable": "true",
    "segment.bytes": str(1024 * 1024),
    "local.retention.bytes": str(1024 * 1024),
    "retention.ms": "-1",
    "retention.bytes": str(1 << 40),
    "file.delete.delay.ms": "0",
}
SET = AlterConfigOpType.SET
T0 = 1_790_000_000_000
REST_SECONDS = 1.0
"""Of a tier without work: five of its rounds."""


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with seaweedfs() as running:
        yield running


def settings(server: S3Server, prefix: str) -> dict[str, str]:
    return {
        "remote.log.storage.system.enable": "true",
        "horolog.tier.url": server.url(prefix),
        "remote.log.manager.task.interval.ms": "200",
        "log.retention.check.interval.ms": "200",
        "log.initial.task.delay.ms": "200",
    }


def start(server: S3Server, data_dir: Path, **more: str) -> Any:
    with only_aws(server.environment):
        return start_broker(data_dir, {**settings(server, data_dir.parent.name), **more})


def make_topic(bootstrap: str, name: str, **more: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic(name, 1, 1, config={**TOPIC_SETTINGS, **more})
    admin.create_topics([topic])[name].result(30)


def write(bootstrap: str, topic: str, first: int = 0, count: int = RECORDS) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 5})
    for number in range(first, first + count):
        value = b"%08d" % number + b"x" * (VALUE_BYTES - 8)
        producer.produce(topic, value, timestamp=T0 + number)
        producer.poll(0)
    assert producer.flush(60) == 0


def read_all(bootstrap: str, topic: str, count: int, first: int = 0) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    consumer.assign([TopicPartition(topic, 0, first)])
    found: list[int] = []
    ends = time.monotonic() + 60
    while len(found) < count and time.monotonic() < ends:
        for message in consumer.consume(1000, 1):
            assert message.error() is None, message.error()
            value = message.value()
            assert value is not None
            assert message.offset() == int(value[:8])
            found.append(message.offset())
    consumer.close()
    return found


def offset_of(bootstrap: str, topic: str, timestamp: int) -> tuple[int, int]:
    """Error code and offset."""
    host, _, port = bootstrap.rpartition(":")
    client = WireClient(host, int(port))
    try:
        asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
        answer = client.call(request, 11).topics[0].partitions[0]
        return answer.error_code, answer.offset
    finally:
        client.close()


def until(holds: Callable[[], bool], what: str) -> None:
    ends = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < ends, what
        time.sleep(0.1)


def wait_until_away(bootstrap: str, topic: str) -> int:
    """The local start offset, once most of the topic is only in the store, and no more leaves."""

    def places() -> tuple[int, int]:
        asked = EARLIEST_LOCAL, LATEST_TIERED
        local, copied = (offset_of(bootstrap, topic, each)[1] for each in asked)
        return local, copied

    def is_at_rest() -> bool:
        before = places()
        time.sleep(REST_SECONDS)
        return places() == before

    until(lambda: places()[0] >= RECORDS // 2, "nothing leaves")
    until(is_at_rest, "more leaves all the time")
    return places()[0]


def test_a_topic_outgrows_its_disk(server: S3Server, tmp_path: Path) -> None:
    with start(server, tmp_path / "data") as broker:
        make_topic(broker.bootstrap, "t")
        write(broker.bootstrap, "t")
        local = wait_until_away(broker.bootstrap, "t")
        logs = [each for each in (tmp_path / "data" / "t-0").iterdir() if each.suffix == ".log"]
        assert sum(each.stat().st_size for each in logs) < 4 * 1024 * 1024
        assert offset_of(broker.bootstrap, "t", EARLIEST) == (0, 0)
        assert offset_of(broker.bootstrap, "t", LATEST_TIERED)[1] >= local - 1
        pending = offset_of(broker.bootstrap, "t", EARLIEST_PENDING)[1]
        assert offset_of(broker.bootstrap, "t", LATEST_TIERED)[1] == pending - 1
        assert read_all(broker.bootstrap, "t", RECORDS) == list(range(RECORDS))
        for wanted in (0, 17, RECORDS // 3, local - 1, RECORDS - 1):
            assert offset_of(broker.bootstrap, "t", T0 + wanted) == (0, wanted)
        broker.kill()
    with start(server, tmp_path / "data") as broker:
        assert read_all(broker.bootstrap, "t", RECORDS) == list(range(RECORDS))
        write(broker.bootstrap, "t", RECORDS, 100)
        assert len(read_all(broker.bootstrap, "t", RECORDS + 100)) == RECORDS + 100


def test_a_store_that_stands_still_stops_nobody_else(server: S3Server, tmp_path: Path) -> None:
    more = {"remote.fetch.max.wait.ms": "300", "remote.list.offsets.request.timeout.ms": "1000"}
    with start(server, tmp_path / "data", **more) as broker:
        make_topic(broker.bootstrap, "t")
        write(broker.bootstrap, "t")
        wait_until_away(broker.bootstrap, "t")
        with server.frozen():
            write(broker.bootstrap, "t", RECORDS, 2000)
            first = offset_of(broker.bootstrap, "t", LATEST_TIERED)[1] + 1  # it cannot leave
            behind = read_all(broker.bootstrap, "t", RECORDS + 2000 - first, first)
            assert behind == list(range(first, RECORDS + 2000))
            code, _ = offset_of(broker.bootstrap, "t", T0 + 5)
            assert code == 7, "REQUEST_TIMED_OUT"
        assert read_all(broker.bootstrap, "t", RECORDS + 2000) == list(range(RECORDS + 2000))
        assert offset_of(broker.bootstrap, "t", T0 + 5) == (0, 5)


def test_objects_of_a_deleted_topic_go(server: S3Server, tmp_path: Path) -> None:
    store = server.open(tmp_path.name)
    with start(server, tmp_path / "data") as broker:
        make_topic(broker.bootstrap, "t")
        write(broker.bootstrap, "t")
        wait_until_away(broker.bootstrap, "t")
        assert len(list(store.list("topics/"))) > 4
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.delete_topics(["t"])["t"].result(30)
        until(lambda: not list(store.list("topics/")), "objects stay")


def test_retention_is_of_both_tiers(server: S3Server, tmp_path: Path) -> None:
    store = server.open(tmp_path.name)
    with start(server, tmp_path / "data") as broker:
        kept = 3 * 1024 * 1024
        make_topic(broker.bootstrap, "t", **{"retention.bytes": str(kept)})
        write(broker.bootstrap, "t")
        until(lambda: offset_of(broker.bootstrap, "t", EARLIEST)[1] > 0, "nothing goes")
        start_offset = offset_of(broker.bootstrap, "t", EARLIEST)[1]
        assert read_all(broker.bootstrap, "t", RECORDS - start_offset, start_offset)
        segment = 1024 * 1024  # one goes only when what stays is as much as is to be kept
        until(lambda: _stored_bytes(store) <= kept + segment, "objects stay")
        assert _stored_bytes(store) > kept - 2 * segment


def _stored_bytes(store: ObjectStore) -> int:
    found = store.list("topics/")
    return sum(each.size_bytes for each in found if each.key.endswith(".log"))


def change(bootstrap: str, kind: ConfigResource.Type, of: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=SET)
    resource = ConfigResource(kind, of, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(30)


def test_local_retention_by_time_is_changed_while_the_topic_lives(
    server: S3Server, tmp_path: Path
) -> None:
    with start(server, tmp_path / "data") as broker:
        make_topic(broker.bootstrap, "t", **{"local.retention.bytes": "-2"})
        write(broker.bootstrap, "t", count=2000)
        until(lambda: offset_of(broker.bootstrap, "t", LATEST_TIERED)[1] > 0, "nothing is copied")
        assert offset_of(broker.bootstrap, "t", EARLIEST_LOCAL) == (0, 0)
        change(broker.bootstrap, ConfigResource.Type.TOPIC, "t", "local.retention.ms", "1000")
        until(lambda: offset_of(broker.bootstrap, "t", EARLIEST_LOCAL)[1] > 0, "nothing leaves")
        assert read_all(broker.bootstrap, "t", 2000) == list(range(2000))


def test_copying_that_is_turned_off_ends_with_its_segment(server: S3Server, tmp_path: Path) -> None:
    """And not with all that waits, which is as fast as a rate that was raised meanwhile."""
    rate, off = "remote.log.manager.copy.max.bytes.per.second", "remote.log.copy.disable"
    with start(server, tmp_path / "data") as broker:
        change(broker.bootstrap, ConfigResource.Type.BROKER, "1", rate, "200000")
        make_topic(broker.bootstrap, "halted", **{"local.retention.bytes": "-2"})
        write(broker.bootstrap, "halted", count=RECORDS * 2)
        at = partial(offset_of, broker.bootstrap, "halted", LATEST_TIERED)
        until(lambda: at()[1] > 0, "nothing is copied")
        change(broker.bootstrap, ConfigResource.Type.TOPIC, "halted", off, "true")
        change(broker.bootstrap, ConfigResource.Type.BROKER, "1", rate, str(1 << 40))
        time.sleep(REST_SECONDS * 2)
        assert 0 < at()[1] < RECORDS
        change(broker.bootstrap, ConfigResource.Type.TOPIC, "halted", off, "false")
        until(lambda: at()[1] > RECORDS * 3 // 2, "copying does not go on")


def test_a_broker_comes_back_from_the_store_alone(server: S3Server, tmp_path: Path) -> None:
    group = {"group.id": "counting", "enable.auto.commit": False}
    with start(server, tmp_path / "data", **{"horolog.tier.max.lag.ms": "300"}) as broker:
        make_topic(broker.bootstrap, "t", **{"horolog.search.clock": "record"})
        write(broker.bootstrap, "t")
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, **group})
        consumer.commit(offsets=[TopicPartition("t", 0, 4321)], asynchronous=False)
        consumer.close()
        until(
            lambda: offset_of(broker.bootstrap, "t", LATEST_TIERED)[1] == RECORDS - 1,
            "the last segment does not end",
        )
        store = server.open(tmp_path.name)
        state = "topics/__consumer_offsets/"
        until(lambda: any(each.key.endswith(".log") for each in store.list(state)), "no offsets")
        time.sleep(1)  # the commit's own segment ends within the lag
        broker.kill()
    shutil.rmtree(tmp_path / "data")
    command = [str(HOROLOG), "restore", "--from", server.url(tmp_path.name)]
    with only_aws(server.environment):
        done = subprocess.run(
            [*command, "--data-dir", str(tmp_path / "data")], capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with start(server, tmp_path / "data") as broker:
        assert read_all(broker.bootstrap, "t", RECORDS) == list(range(RECORDS))
        assert offset_of(broker.bootstrap, "t", T0 + 77) == (0, 77)
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, **group})
        assert consumer.committed([TopicPartition("t", 0)], timeout=30)[0].offset == 4321
        consumer.close()
        write(broker.bootstrap, "t", RECORDS, 10)
        assert len(read_all(broker.bootstrap, "t", 10, RECORDS)) == 10
