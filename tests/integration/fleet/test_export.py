"""A fleet out of the directory of one broker, and the other way: all is there, at its offsets."""

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.patience import until
from tests.support.tier.s3_server import S3Server
from tests.support.worlds.broker_process import HOROLOG, start_broker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PARTITIONS, RECORD = 3, 8000
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "remote.log.manager.task.interval.ms": "200",
    "horolog.fleet.checkpoint.ms": "1000",
}
SAME_CLUSTER = {"cluster.id": "l4roSyz_TpSHYqQClSJzew"}


@pytest.fixture
def fleet(both: tuple[PostgresServer, S3Server], tmp_path: Path) -> Iterator[FleetOfBrokers]:
    with some_brokers(tmp_path, both, (1, 2), SETTINGS) as brokers:
        yield brokers


def fill(bootstrap: str) -> None:
    """Records in segments and behind them, of transactions and without, and a group."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    settings = {"segment.bytes": str(1 << 20), "retention.ms": "123456789"}
    admin.create_topics([NewTopic("t", PARTITIONS, config=settings)])["t"].result(30)
    writer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(1200):
        writer.produce("t", f"{number:08d}".ljust(RECORD).encode(), partition=number % PARTITIONS)
    assert writer.flush(60) == 0
    in_turns = Producer({"bootstrap.servers": bootstrap, "transactional.id": "x"})
    in_turns.init_transactions(60)
    for turn in range(4):
        in_turns.begin_transaction()
        for number in range(PARTITIONS):
            in_turns.produce("t", f"{turn}-{number}".encode(), partition=number)
        in_turns.abort_transaction(60) if turn % 2 else in_turns.commit_transaction(60)
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
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


def goes_on(bootstrap: str) -> None:
    """The transactional producer has its id still."""
    again = Producer({"bootstrap.servers": bootstrap, "transactional.id": "x"})
    again.init_transactions(60)
    again.begin_transaction()
    again.produce("t", b"more", partition=0)
    again.commit_transaction(60)
    assert [each[2] for each in records(bootstrap)].count(b"more") == 1


def command(
    fleet: FleetOfBrokers, verb: str, directory: Path
) -> "subprocess.CompletedProcess[str]":
    arguments = ["--url", fleet.url, "--store", fleet.store_url, "--data-dir", directory]
    return subprocess.run(
        [str(HOROLOG), "fleet", verb, *map(str, arguments)],
        env=fleet.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_fleet_goes_on_with_all_that_one_broker_had(
    both: tuple[PostgresServer, S3Server], tmp_path: Path
) -> None:
    fleet = FleetOfBrokers(tmp_path, *both)
    one = tmp_path / "one"
    with start_broker(one, {k: v for k, v in SETTINGS.items() if "fleet" not in k}) as alone:
        fill(alone.bootstrap)
        expected = records(alone.bootstrap)
        held = command(fleet, "import", one)
        assert held.returncode == 2, "a broker has it"
    done = command(fleet, "import", one)
    assert done.returncode == 0, done.stderr
    assert "its nodes may start" in done.stdout
    assert command(fleet, "import", one).returncode == 0, "a second time changes nothing"
    try:
        for node_id in (1, 2):
            fleet.start(node_id, SETTINGS)
        assert command(fleet, "import", one).returncode == 2, "a node lives"
        assert records(fleet.bootstrap) == expected
        assert committed(fleet.bootstrap) == [100, 101, 102]
        goes_on(fleet.bootstrap)
        fleet.kill(1)
        assert len(records(fleet.bootstrap)) == len(expected) + 1
    finally:
        fleet.end()


def test_directories_that_cannot_go_into_a_fleet_are_refused(
    both: tuple[PostgresServer, S3Server], tmp_path: Path
) -> None:
    fleet = FleetOfBrokers(tmp_path, *both)
    (tmp_path / "empty").mkdir()
    for name in ("empty", "nowhere"):
        refused = command(fleet, "import", tmp_path / name)
        assert refused.returncode == 2
        assert "no directory of a broker that stood alone" in refused.stderr
    assert not (tmp_path / "nowhere").exists()
    with start_broker(tmp_path / "open", {"transaction.state.log.num.partitions": "1"}) as alone:
        writer = Producer({"bootstrap.servers": alone.bootstrap, "transactional.id": "x"})
        writer.init_transactions(60)
        writer.begin_transaction()
        writer.produce("t", b"never committed")
        assert writer.flush(60) == 0
        alone.kill()
    refused = command(fleet, "import", tmp_path / "open")
    assert refused.returncode == 2
    assert "a transaction is open in it" in refused.stderr
    try:
        fleet.start(1, SETTINGS)
    finally:
        fleet.end()
    refused = command(fleet, "import", tmp_path / "node-1")
    assert refused.returncode == 2
    assert "no directory of a broker that stood alone" in refused.stderr
    with start_broker(tmp_path / "open") as alone:
        admin = AdminClient({"bootstrap.servers": alone.bootstrap})
        assert "t" in admin.list_topics(timeout=10).topics, "it is as it was"


def test_users_of_a_broker_are_not_left_out_where_a_fleet_has_others(
    both: tuple[PostgresServer, S3Server], tmp_path: Path
) -> None:
    """Those of the fleet would stay."""
    fleet = FleetOfBrokers(tmp_path, *both)
    with start_broker(tmp_path / "one", SAME_CLUSTER) as alone:
        add_user(alone.bootstrap, "alice")
    try:
        node = fleet.start(1, SAME_CLUSTER)
        add_user(node.bootstrap, "bob")
        until(lambda: "fleet_life_begins" in node.log.read_text(), "it has no part in the fleet")
        fleet.stop(1)
    finally:
        fleet.end()
    refused = command(fleet, "import", tmp_path / "one")
    assert refused.returncode == 2
    assert "it has users of its own" in refused.stderr
    assert "Give --url a database that no node has used" in refused.stderr


def add_user(bootstrap: str, name: str) -> None:
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    upsert = UserScramCredentialUpsertion(name, credential, b"a password")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.alter_user_scram_credentials([upsert])[name].result(30)


def test_one_broker_goes_on_with_all_that_a_fleet_had(
    fleet: FleetOfBrokers, tmp_path: Path
) -> None:
    fill(fleet.bootstrap)
    expected = records(fleet.bootstrap)
    assert len(expected) == 1200 + 2 * PARTITIONS
    done = command(fleet, "export", tmp_path / "one")
    assert done.returncode == 0, done.stderr
    assert "partitions of 3 topics" in done.stdout
    again = command(fleet, "export", tmp_path / "one")
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
        goes_on(alone.bootstrap)
    verified = subprocess.run(
        [str(HOROLOG), "verify", str(tmp_path / "one")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert verified.returncode == 0, verified.stdout + verified.stderr
