"""More data than the disk holds, from a producer that is faster than the store: nobody stops.

The broker has Kafka's intervals: nothing but the shortage itself makes it hurry.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.clients.scraped import metric_of
from tests.support.disk.mounts import tmpfs
from tests.support.tier.s3_server import S3Server, only_aws, seaweedfs
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

VALUE_BYTES = 50_000
RECORDS = 3000
LONGEST_GAP_SECONDS = 8.0
"""A round of copies comes every 30 s; on a busy machine a store takes its time."""


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with seaweedfs() as running:
        yield running


@pytest.fixture
def broker(server: S3Server, tmp_path: Path) -> Iterator[NodeProcess]:
    """On a disk of 64 MiB."""
    settings = {
        "remote.log.storage.system.enable": "true",
        "horolog.tier.url": server.url(tmp_path.name),
    }
    with (
        tmpfs(tmp_path / "disk", "64m") as disk,
        only_aws(server.environment),
        start_broker(disk.path / "data", settings, log=tmp_path / "log") as node,
    ):
        yield node


def make_topic(node: NodeProcess, **config: str) -> None:
    settings = {"remote.storage.enable": "true", "retention.ms": "-1", **config}
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_topics([NewTopic("t", 1, 1, config=settings)])["t"].result(30)


class Writer:
    """Writes as fast as records are taken in, and knows for how long none was."""

    def __init__(self, node: NodeProcess) -> None:
        self.longest_gap = 0.0
        self._heard_at = time.monotonic()
        self._producer = Producer({
            "bootstrap.servers": node.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "queue.buffering.max.kbytes": 16_384,
        })  # fmt: skip

    def write(self, first: int, count: int) -> None:
        self._heard_at = time.monotonic()
        for number in range(first, first + count):
            self._send(value_of(number))
        assert self._producer.flush(60) == 0

    def _send(self, value: bytes) -> None:
        while True:
            try:
                self._producer.produce("t", value, on_delivery=self._told)
                break
            except BufferError:
                self._producer.poll(0.05)
        self._producer.poll(0)

    def _told(self, error: object, _: object) -> None:
        assert error is None, error
        now = time.monotonic()
        self.longest_gap = max(self.longest_gap, now - self._heard_at)
        self._heard_at = now


def value_of(number: int) -> bytes:
    return b"%010d" % number * (VALUE_BYTES // 10)


def read_all(node: NodeProcess, count: int) -> None:
    """All come, in order, as they were written."""
    consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "reader"})
    consumer.assign([TopicPartition("t", 0, 0)])
    at, ends = 0, time.monotonic() + 90
    while at < count:
        assert time.monotonic() < ends, f"{at} of {count} came"
        for message in consumer.consume(500, 1):
            assert message.error() is None, message.error()
            assert (message.offset(), message.value()) == (at, value_of(at))
            at += 1
    consumer.close()


@pytest.mark.parametrize("segment_bytes", [2 << 20, 1 << 30], ids=["2 MiB", "1 GiB"])
def test_a_producer_is_slowed_and_not_stopped(broker: NodeProcess, segment_bytes: int) -> None:
    """150 MB through 64 MiB; also when a segment is larger than the disk."""
    make_topic(broker, **{"segment.bytes": str(segment_bytes), "local.retention.bytes": "1048576"})
    writer = Writer(broker)
    writer.write(0, RECORDS)
    assert writer.longest_gap < LONGEST_GAP_SECONDS
    read_all(broker, RECORDS)
    assert metric_of(broker, "horolog_task_failures_total") == 0


def wait_until_refused(node: NodeProcess) -> None:
    ends = time.monotonic() + 60
    while not metric_of(node, "horolog_disk_refused_batches_total"):
        assert time.monotonic() < ends, "100 MB were taken in by a disk of 64 MiB"
        time.sleep(0.2)


def test_a_store_that_stands_still_fills_the_disk_and_all_goes_on_when_it_is_back(
    broker: NodeProcess, server: S3Server
) -> None:
    make_topic(broker, **{"segment.bytes": str(2 << 20), "local.retention.bytes": "1048576"})
    Writer(broker).write(0, 400)
    with ThreadPoolExecutor(1) as thread:
        writing = thread.submit(Writer(broker).write, 400, 2000)
        with server.frozen():
            wait_until_refused(broker)
            assert not writing.done()
        writing.result()
    read_all(broker, 2400)
