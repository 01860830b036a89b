"""A full disk, a real broker, real clients: who must wait waits, the rest goes on, nobody loses."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.clients.admin import Admin
from tests.support.disk.mounts import SmallDisk, tmpfs
from tests.support.worlds.watched_broker import WatchedBroker

VALUE = b"x" * 100_000
RESERVE = 4 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with tmpfs(tmp_path / "disk", "32m") as disk:
        yield disk


@pytest.fixture
def broker(disk: SmallDisk, tmp_path: Path) -> Iterator[WatchedBroker]:
    settings = {
        "horolog.disk.reserve.bytes": str(RESERVE),
        "horolog.disk.ballast.bytes": "1MiB",
        "offsets.topic.num.partitions": "2",
        "log.segment.delete.delay.ms": "1h",
    }
    with WatchedBroker(disk.path / "data", settings, log=tmp_path / "log") as broker:
        yield broker


def test_producers_wait_for_room_and_all_else_goes_on(
    broker: WatchedBroker, disk: SmallDisk
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.process.bootstrap})
    broker.make_topic("large")
    broker.make_topic("kept")
    delivered: list[Any] = []
    producer = Producer({"bootstrap.servers": broker.process.bootstrap, "retry.backoff.ms": 50})
    for number in range(400):
        producer.produce(
            "large", VALUE, b"%d" % number, on_delivery=lambda error, m: delivered.append(error)
        )
    assert producer.flush(4) > 0, "40 MB cannot be delivered to a disk of 32"
    told = len(delivered)
    assert 0 < told <= 280, "4 of 32 MiB are kept in reserve"
    assert not any(delivered)

    health = Admin(broker.process.facts["http"]).ask("GET", "/readyz")
    assert health.status == 503
    assert broker.metric("horolog_disk_low") == 1
    assert broker.metric("horolog_disk_refused_batches_total") > 0
    with pytest.raises(KafkaException, match=r"horolog\.disk\.reserve\.bytes"):
        admin.create_topics([NewTopic("more", 1)])["more"].result(20)
    consumer = Consumer({"bootstrap.servers": broker.process.bootstrap, "group.id": "g"})
    assert consumer.committed([TopicPartition("large", 0)], 20)[0].offset < 0
    consumer.assign([TopicPartition("large", 0, 0)])
    assert consumer.consume(10, 20)[0].value() == VALUE
    consumer.commit(offsets=[TopicPartition("kept", 0, 7)], asynchronous=False)
    assert consumer.committed([TopicPartition("kept", 0)], 20)[0].offset == 7

    waiting = Producer({"bootstrap.servers": broker.process.bootstrap, "retry.backoff.ms": 50})
    outcome: list[Any] = []
    waiting.produce("kept", b"at last", on_delivery=lambda error, m: outcome.append(error or m))
    waiting.poll(0.5)
    assert outcome == []
    producer.purge()
    admin.delete_topics(["large"])["large"].result(20)
    assert waiting.flush(20) == 0
    assert outcome[0].offset() == 0
    assert broker.metric("horolog_disk_low") == 0
    assert Admin(broker.process.facts["http"]).ask("GET", "/readyz").status == 200
    admin.create_topics([NewTopic("more", 1)])["more"].result(20)
    consumer.close()
    broker.check_unharmed()


def test_when_others_take_the_last_byte_offsets_and_deletions_go_on(
    broker: WatchedBroker, disk: SmallDisk
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.process.bootstrap})
    broker.make_topic("doomed")
    consumer = Consumer({"bootstrap.servers": broker.process.bootstrap, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("doomed", 0, 1)], asynchronous=False)
    wait_for(lambda: broker.metric("horolog_disk_ballast_bytes") > 0)
    disk.fill()
    wait_for(lambda: broker.metric("horolog_disk_ballast_bytes") == 0)
    for offset in range(2, 200):
        consumer.commit(offsets=[TopicPartition("doomed", 0, offset)], asynchronous=False)
    assert consumer.committed([TopicPartition("doomed", 0)], 20)[0].offset == 199
    admin.delete_topics(["doomed"])["doomed"].result(20)
    disk.free()
    wait_for(lambda: broker.metric("horolog_disk_ballast_bytes") > 0)
    consumer.close()
    broker.check_unharmed()


def wait_for(condition: Any) -> None:
    pause = threading.Event()
    for _ in range(300):
        if condition():
            return
        pause.wait(0.05)
    raise AssertionError("it never came to be")
