"""A fleet as the directory of one broker: everything is there, at the same offsets."""

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from tests.support.fleet.brokers import FleetOfBrokers, engines
from tests.support.fleet.postgres_server import PostgresServer, is_postgres_published
from tests.support.tier.s3_server import S3Server, is_seaweedfs_published
from tests.support.worlds.broker_process import HOROLOG, start_broker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PARTITIONS, RECORD = 3, 8000
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "remote.log.manager.task.interval.ms": "200",
    "horolog.fleet.checkpoint.ms": "1000",
}


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[PostgresServer, S3Server]]:
    if not is_postgres_published() or not is_seaweedfs_published():
        pytest.skip("the package registry has no such engine for this machine")
    with engines() as running:
        yield running


@pytest.fixture
def fleet(both: tuple[PostgresServer, S3Server], tmp_path: Path) -> Iterator[FleetOfBrokers]:
    brokers = FleetOfBrokers(tmp_path, *both)
    try:
        for node_id in (1, 2):
            brokers.start(node_id, SETTINGS)
        yield brokers
    finally:
        brokers.end()


def filled(fleet: FleetOfBrokers) -> None:
    """Records in segments and in commits, of transactions and without, and a group."""
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    settings = {"segment.bytes": str(1 << 20), "retention.ms": "123456789"}
    admin.create_topics([NewTopic("t", PARTITIONS, config=settings)])["t"].result(30)
    writer = Producer({"bootstrap.servers": fleet.bootstrap, "enable.idempotence": True})
    for number in range(1200):
        writer.produce("t", f"{number:08d}".ljust(RECORD).encode(), partition=number % PARTITIONS)
    assert writer.flush(60) == 0
    in_turns = Producer({"bootstrap.servers": fleet.bootstrap, "transactional.id": "x"})
    in_turns.init_transactions(60)
    for turn in range(4):
        in_turns.begin_transaction()
        for number in range(PARTITIONS):
            in_turns.produce("t", f"{turn}-{number}".encode(), partition=number)
        in_turns.abort_transaction(60) if turn % 2 else in_turns.commit_transaction(60)
    reader = Consumer({"bootstrap.servers": fleet.bootstrap, "group.id": "readers"})
    while True:
        with suppress(KafkaException):  # the coordinator may not lead yet
            reader.commit(
                offsets=[TopicPartition("t", each, 100 + each) for each in range(PARTITIONS)],
                asynchronous=False,
            )
            break
    reader.close()


def records(bootstrap: str) -> list[tuple[int, int, bytes]]:
    """What a reader of committed records finds."""
    reader = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "judge", "enable.partition.eof": True,
        "isolation.level": "read_committed", "auto.offset.reset": "earliest",
    })  # fmt: skip
    reader.assign([TopicPartition("t", each, 0) for each in range(PARTITIONS)])
    found, ended = list[tuple[int, int, bytes]](), 0
    while ended < PARTITIONS:
        message = reader.poll(30)
        assert message is not None
        if message.error() is None:
            found.append((message.partition() or 0, message.offset() or 0, message.value() or b""))
        else:
            ended += 1
    reader.close()
    return sorted(found)


def committed(bootstrap: str) -> list[int]:
    asking = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
    places = [TopicPartition("t", each) for each in range(PARTITIONS)]
    found = [each.offset for each in asking.committed(places, 30)]
    asking.close()
    return found


def export(fleet: FleetOfBrokers, directory: Path) -> "subprocess.CompletedProcess[str]":
    arguments = ["--url", fleet.url, "--store", fleet.store_url, "--data-dir", directory]
    return subprocess.run(
        [str(HOROLOG), "fleet", "export", *map(str, arguments)],
        env=fleet.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_one_broker_goes_on_with_all_that_a_fleet_had(
    fleet: FleetOfBrokers, tmp_path: Path
) -> None:
    filled(fleet)
    expected = records(fleet.bootstrap)
    assert len(expected) == 1200 + 2 * PARTITIONS
    done = export(fleet, tmp_path / "one")
    assert done.returncode == 0, done.stderr
    assert "partitions of 3 topics" in done.stdout
    again = export(fleet, tmp_path / "one")
    assert again.returncode == 2, "a directory that is not empty is left alone"
    assert "not empty" in again.stderr
    fleet.end()
    with start_broker(tmp_path / "one") as alone:
        assert records(alone.bootstrap) == expected
        assert committed(alone.bootstrap) == [100, 101, 102]
        admin = AdminClient({"bootstrap.servers": alone.bootstrap})
        resource = ConfigResource(ResourceType.TOPIC, "t")
        settings = admin.describe_configs([resource])[resource].result(30)
        assert settings["retention.ms"].value == "123456789"
        again = Producer({"bootstrap.servers": alone.bootstrap, "transactional.id": "x"})
        again.init_transactions(60)
        again.begin_transaction()
        again.produce("t", b"more", partition=0)
        again.commit_transaction(60)
        assert [each[2] for each in records(alone.bootstrap)].count(b"more") == 1
    verified = subprocess.run(
        [str(HOROLOG), "verify", str(tmp_path / "one")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert verified.returncode == 0, verified.stdout + verified.stderr
