"""Segments of a fleet in the store: what is there needs no commit and no disk of any node."""

import asyncio
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.patience import until
from tests.support.tier.s3_server import S3Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PARTITIONS, RECORD = 3, 8000
PATIENCE = 90.0
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "remote.log.manager.task.interval.ms": "200",
    "horolog.fleet.checkpoint.ms": "1000",
    "log.retention.check.interval.ms": "300",
    "log.initial.task.delay.ms": "300",
    "log.cleaner.backoff.ms": "200",
}
SMALL = {"segment.bytes": str(1 << 20)}


@pytest.fixture
def fleet(both: tuple[PostgresServer, S3Server], tmp_path: Path) -> Iterator[FleetOfBrokers]:
    with some_brokers(tmp_path, both, (1, 2, 3), SETTINGS) as brokers:
        yield brokers


def made(fleet: FleetOfBrokers, **config: str) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    settings = {key.replace("_", "."): text for key, text in config.items()}
    new = NewTopic("t", PARTITIONS, config={**SMALL, **settings})
    admin.create_topics([new])["t"].result(30)
    return admin


class Writer:
    """An idempotent producer of numbered records."""

    def __init__(self, fleet: FleetOfBrokers) -> None:
        self._producer = Producer({
            "bootstrap.servers": fleet.bootstrap, "enable.idempotence": True,
            "message.timeout.ms": 120_000, "topic.metadata.refresh.interval.ms": 1000,
            "batch.size": 20_000, "linger.ms": 5,
        })  # fmt: skip
        self.sent = 0

    def send(self, count: int, *, keys: int = 0) -> None:
        """With so many keys in each partition; none."""
        for _ in range(count):
            value = f"{self.sent:08d}".ljust(RECORD, "x").encode()
            key = str(self.sent // PARTITIONS % keys) if keys else None
            self._producer.produce("t", value, key, partition=self.sent % PARTITIONS)
            self.sent += 1
        assert self._producer.flush(90) == 0


def rows(fleet: FleetOfBrokers, statement: str) -> list[asyncpg.Record]:
    async def asked() -> list[asyncpg.Record]:
        connection = await asyncpg.connect(fleet.url)
        try:
            return await connection.fetch(statement)
        finally:
            await connection.close()

    return asyncio.run(asked())


def committed_bytes(fleet: FleetOfBrokers) -> int:
    [row] = rows(
        fleet,
        "SELECT coalesce(sum(len), 0) AS n FROM wal_span JOIN topic USING (topic_id) "
        "WHERE name = 't'",
    )
    return int(row["n"])


def copied(fleet: FleetOfBrokers) -> int:
    """Records in segments."""
    [row] = rows(
        fleet,
        "SELECT coalesce(sum(copied_end), 0) AS n FROM part JOIN topic USING (topic_id) "
        "WHERE name = 't'",
    )
    return int(row["n"])


def numbers(fleet: FleetOfBrokers, count: int, *, within: float = PATIENCE) -> list[int]:
    """All records from the earliest ones on; a little longer than needed, for one too many."""
    reader = Consumer({
        "bootstrap.servers": fleet.bootstrap, "group.id": "none",
        "auto.offset.reset": "earliest", "topic.metadata.refresh.interval.ms": 1000,
        "reconnect.backoff.max.ms": 300,
    })  # fmt: skip
    reader.assign([TopicPartition("t", each, 0) for each in range(PARTITIONS)])
    found, end = list[int](), time.monotonic() + within
    while len(found) < count and time.monotonic() < end:
        for each in reader.consume(500, 0.5):
            assert each.error() is None, each.error()
            found.append(int((each.value() or b"")[:8]))
    found += [int((each.value() or b"")[:8]) for each in reader.consume(500, 1.0)]
    reader.close()
    return sorted(found)


def test_what_is_in_segments_leaves_the_commits_and_outlives_all_disks(
    fleet: FleetOfBrokers, tmp_path: Path
) -> None:
    made(fleet)
    writer = Writer(fleet)
    for count in (500, 1000, 1500):
        writer.send(500)
        until(lambda: copied(fleet) > count - 450, f"only {copied(fleet)} records were copied")  # noqa: B023
    until(lambda: committed_bytes(fleet) < 1500 * RECORD / 2, "commits stay")
    for node_id in (1, 2, 3):
        fleet.kill(node_id)
        shutil.rmtree(tmp_path / f"node-{node_id}")
    for node_id in (1, 2, 3):
        fleet.start(node_id, SETTINGS)
    assert numbers(fleet, 1500) == list(range(1500))
    before = copied(fleet)
    writer.send(1500)
    until(lambda: copied(fleet) > before, "nothing is copied by the next leaders")
    assert numbers(fleet, 3000) == list(range(3000))


def test_leaders_that_take_turns_copy_each_record_once(
    fleet: FleetOfBrokers, tmp_path: Path
) -> None:
    """Segments of one leader end elsewhere than those of the next."""
    admin = made(fleet)
    writer = Writer(fleet)
    for turn in range(6):
        writer.send(400)
        node_id = turn % 3 + 1
        fleet.kill(node_id)
        if turn % 2:
            shutil.rmtree(tmp_path / f"node-{node_id}")
        writer.send(200)
        fleet.start(node_id, SETTINGS)
    assert numbers(fleet, 3600) == list(range(3600))
    until(lambda: copied(fleet) > 3000, f"only {copied(fleet)} records were copied")
    assert numbers(fleet, 3600) == list(range(3600))
    assert sorted(admin.list_topics("t").topics["t"].partitions) == [0, 1, 2]


def test_the_last_record_of_each_key_outlives_all_disks(
    fleet: FleetOfBrokers, tmp_path: Path
) -> None:
    quick = {"min_cleanable_dirty_ratio": "0.01", "max_compaction_lag_ms": "500"}
    made(fleet, cleanup_policy="compact", segment_ms="1000", **quick)
    writer = Writer(fleet)
    for _ in range(4):
        writer.send(500, keys=20)
        time.sleep(1.2)  # the next record ends the segment
    writer.send(60, keys=20)
    until(lambda: copied(fleet) > 1900, f"only {copied(fleet)} records were copied")
    until(lambda: len(numbers(fleet, 2060, within=5.0)) < 700, "nothing is compacted")
    for node_id in (1, 2, 3):
        fleet.kill(node_id)
        shutil.rmtree(tmp_path / f"node-{node_id}")
    for node_id in (1, 2, 3):
        fleet.start(node_id, SETTINGS)
    found = numbers(fleet, 2060, within=20.0)
    assert set(range(2000, 2060)) <= set(found)
    assert len(found) == len(set(found)) < 2060


def test_records_leave_the_disks_and_then_the_store(fleet: FleetOfBrokers) -> None:
    made(fleet, remote_storage_enable="true", local_retention_bytes=str(1 << 20))
    writer = Writer(fleet)
    writer.send(1500)
    until(lambda: copied(fleet) > 1000, f"only {copied(fleet)} records were copied")
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    assert numbers(fleet, 1500) == list(range(1500))
    places = {TopicPartition("t", each): 400 for each in range(PARTITIONS)}
    ends = [TopicPartition(each.topic, each.partition, end) for each, end in places.items()]
    for future in admin.delete_records(ends).values():
        future.result(30)
    assert numbers(fleet, 300) == list(range(1200, 1500))
    fleet.kill(1)
    writer.send(30)
    assert numbers(fleet, 330) == list(range(1200, 1530))
