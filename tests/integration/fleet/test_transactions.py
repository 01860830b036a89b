"""Transactions whose partitions, groups and coordinators are on several nodes."""

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker.state.state_topic import partition_of
from pipeline.broker_client import BrokerClient
from protocol.apis.api_versions import ApiVersionsRequest
from tests.support.clients import java_programs
from tests.support.clients.java_programs import JavaProgram
from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.patience import until
from tests.support.tier.s3_server import S3Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]

PARTITIONS = 6
PATIENCE = 120.0
ROUNDS, RECORDS_A_ROUND = 5, 600
SETTINGS = {
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}

Start = Callable[[str], subprocess.Popen[bytes]]


@pytest.fixture
def fleet(both: tuple[PostgresServer, S3Server], tmp_path: Path) -> Iterator[FleetOfBrokers]:
    """Three brokers with the topics `in` and `out`."""
    with some_brokers(tmp_path, both, (1, 2, 3), SETTINGS) as brokers:
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        made = admin.create_topics([NewTopic(each, PARTITIONS) for each in ("in", "out")])
        for each in made.values():
            each.result(30)
        until(lambda: len(leaders(admin)) == 3, "some node leads nothing")
        yield brokers


def leaders(admin: AdminClient) -> set[int]:
    found = admin.list_topics("out", timeout=10).topics["out"].partitions.values()
    return {each.leader for each in found if each.leader >= 0}


def producer(fleet: FleetOfBrokers, name: str, timeout_ms: int = 60_000) -> Producer:
    made = Producer({
        "bootstrap.servers": fleet.bootstrap, "transactional.id": name, "linger.ms": 1,
        "transaction.timeout.ms": timeout_ms, "topic.metadata.refresh.interval.ms": 1000,
        "reconnect.backoff.max.ms": 300,
    })  # fmt: skip
    made.init_transactions(60)
    return made


def send(to: Producer, values: list[str]) -> None:
    """One after the other to all partitions, and all of them are answered."""
    for number, value in enumerate(values):
        to.produce("out", value, partition=number % PARTITIONS)
    assert to.flush(60) == 0


def committed(fleet: FleetOfBrokers, topic: str = "out") -> list[str]:
    """What a reader of committed records finds, up to the end of each partition."""
    reader = Consumer({
        "bootstrap.servers": fleet.bootstrap, "group.id": "judge", "enable.partition.eof": True,
        "isolation.level": "read_committed", "auto.offset.reset": "earliest",
        "reconnect.backoff.max.ms": 300,
    })  # fmt: skip
    reader.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    found, ended = list[str](), set[int]()
    while len(ended) < PARTITIONS:
        message = reader.poll(30)
        assert message is not None, f"no end of partitions but {ended} within 30 s"
        if message.error() is None:
            found.append((message.value() or b"").decode())
        elif message.partition() is not None:
            ended.add(message.partition())
    reader.close()
    return sorted(found)


def test_what_is_committed_is_read_and_what_is_aborted_is_not(fleet: FleetOfBrokers) -> None:
    wanted = list[str]()
    for name in ("a", "b", "c", "d"):
        writer = producer(fleet, name)
        for turn in range(10):
            values = [f"{name}-{turn}-{each}" for each in range(2 * PARTITIONS)]
            writer.begin_transaction()
            send(writer, values)
            if turn % 3:
                writer.commit_transaction(60)
                wanted += values
            else:
                writer.abort_transaction(60)
        writer.begin_transaction()
        send(writer, [f"{name}-open"])
        assert f"{name}-open" not in committed(fleet)
        writer.abort_transaction(60)
    assert committed(fleet) == sorted(wanted)


def test_a_second_producer_ends_what_the_first_left_open(fleet: FleetOfBrokers) -> None:
    first = producer(fleet, "one")
    first.begin_transaction()
    send(first, ["lost"] * PARTITIONS)
    second = producer(fleet, "one")
    second.begin_transaction()
    send(second, ["kept"] * PARTITIONS)
    second.commit_transaction(60)
    with pytest.raises(KafkaException) as refused:
        first.commit_transaction(60)
    assert refused.value.args[0].fatal()
    assert committed(fleet) == ["kept"] * PARTITIONS


def test_a_transaction_whose_time_is_over_is_aborted_by_whoever_coordinates(
    fleet: FleetOfBrokers,
) -> None:
    slow = producer(fleet, "slow", timeout_ms=4000)
    slow.begin_transaction()
    send(slow, ["lost"] * PARTITIONS)
    fleet.kill(coordinator(fleet, "slow"))
    other = producer(fleet, "other")
    other.begin_transaction()
    send(other, ["kept"] * PARTITIONS)
    other.commit_transaction(60)
    until(lambda: committed(fleet) == ["kept"] * PARTITIONS, "it was not aborted")


def coordinator(fleet: FleetOfBrokers, name: str) -> int:
    """The node that coordinates a transactional id."""
    topic, admin = "__transaction_state", AdminClient({"bootstrap.servers": fleet.bootstrap})
    index = partition_of(name, 6)
    return int(admin.list_topics(topic, timeout=10).topics[topic].partitions[index].leader)


def confluent_application(address: str) -> subprocess.Popen[bytes]:
    arguments = [address, "in", "out", "group", "copier"]
    return subprocess.Popen([sys.executable, "-m", "tests.conformance.transformer", *arguments])


def fill(fleet: FleetOfBrokers, turn: int) -> None:
    writer = Producer({"bootstrap.servers": fleet.bootstrap, "enable.idempotence": True})
    for number in range(turn * RECORDS_A_ROUND, (turn + 1) * RECORDS_A_ROUND):
        writer.produce("in", f"{number:06d}", str(number), partition=number % PARTITIONS)
    assert writer.flush(60) == 0


def is_copied(fleet: FleetOfBrokers, count: int, group: str = "group") -> bool:
    return copied_so_far(fleet, group) == count


def copied_so_far(fleet: FleetOfBrokers, group: str) -> int:
    """Records of the input that the group has done with; -1 while nobody says."""
    asking = Consumer({"bootstrap.servers": fleet.bootstrap, "group.id": group})
    places = [TopicPartition("in", index) for index in range(PARTITIONS)]
    try:
        return sum(max(each.offset, 0) for each in asking.committed(places, 30))
    except KafkaException:  # the coordinator is moving
        return -1
    finally:
        asking.close()


def transaction_levels(fleet: FleetOfBrokers) -> set[int]:
    """Finalized levels of `transaction.version`, as the nodes say them."""
    found = set[int]()
    for node in fleet.running.values():
        with BrokerClient(node.bootstrap) as client:
            answer = client.call(
                ApiVersionsRequest(client_software_name="test", client_software_version="1")
            )
        levels = {each.name: each.max_version_level for each in answer.finalized_features}
        found.add(levels["transaction.version"])
    return found


def group_coordinator(fleet: FleetOfBrokers, group: str) -> int:
    """The node that coordinates a group."""
    topic, admin = "__consumer_offsets", AdminClient({"bootstrap.servers": fleet.bootstrap})
    index = partition_of(group, 6)
    return int(admin.list_topics(topic, timeout=10).topics[topic].partitions[index].leader)


def copied_through_kills(fleet: FleetOfBrokers, start: Start) -> list[str]:
    """The committed output, after nodes and the application were killed in turns."""
    dice = random.Random(5)
    bootstrap = fleet.bootstrap
    with ExitStack() as stack:
        application = start(bootstrap)
        for turn in range(ROUNDS):
            fill(fleet, turn)
            time.sleep(dice.uniform(0.2, 1.5))
            if turn % 3 == 2:
                end(application)
                application = start(bootstrap)
            else:
                node_id = dice.choice(sorted(fleet.running))
                fleet.kill(node_id)
                time.sleep(dice.uniform(0.0, 3.0))
                fleet.start(node_id, SETTINGS)
        stack.callback(lambda: end(application))
        deadline = time.monotonic() + PATIENCE
        while not is_copied(fleet, ROUNDS * RECORDS_A_ROUND):
            assert time.monotonic() < deadline, "the input was not copied"
            if application.poll() is not None:  # fenced, or an error was final
                application = start(bootstrap)
            time.sleep(0.5)
    return [each[::-1] for each in committed(fleet)]


def end(application: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        application.kill()
    application.wait()


def each_once() -> list[str]:
    return [f"{number:06d}" for number in range(ROUNDS * RECORDS_A_ROUND)]


def test_a_copier_copies_each_record_once_whatever_is_killed(fleet: FleetOfBrokers) -> None:
    assert sorted(copied_through_kills(fleet, confluent_application)) == each_once()


@pytest.mark.kafka
@pytest.mark.skipif(not java_programs.available(), reason="needs Java and Maven")
def test_a_java_copier_copies_each_record_once(fleet: FleetOfBrokers, tmp_path: Path) -> None:
    program = JavaProgram("Transformer", java_programs.client_jars(), tmp_path / "classes")
    log = tmp_path / "application.log"
    found = copied_through_kills(
        fleet, lambda address: program.start(address, "in", "out", "group", "copier", log=log)
    )
    assert sorted(found) == each_once(), log.read_text()


@pytest.mark.kafka
@pytest.mark.skipif(not java_programs.available(), reason="needs Java and Maven")
def test_a_java_copier_whose_coordinators_and_leaders_are_apart(
    fleet: FleetOfBrokers, tmp_path: Path
) -> None:
    """By version 2 of the protocol: leaders have their partitions join at the coordinator, which
    is another node, and so is the one that has the offsets. Each of the three is killed.
    """
    until(lambda: transaction_levels(fleet) == {2}, "some node does not serve version 2")
    group, name = names_apart(fleet)
    program = JavaProgram("Transformer", java_programs.client_jars(), tmp_path / "classes")
    log = tmp_path / "application.log"
    with ExitStack() as stack:
        application = program.start(fleet.bootstrap, "in", "out", group, name, log=log)
        stack.callback(lambda: end(application))
        for turn in range(ROUNDS):
            fill(fleet, turn)
            before = turn * RECORDS_A_ROUND
            until(lambda: copied_so_far(fleet, group) > before, "nothing is copied")  # noqa: B023
            of_group, of_name = group_coordinator(fleet, group), coordinator(fleet, name)
            victim = (of_name, of_group, min({1, 2, 3} - {of_group, of_name}))[turn % 3]
            fleet.kill(victim)
            fleet.start(victim, SETTINGS)
        deadline = time.monotonic() + PATIENCE
        while not is_copied(fleet, ROUNDS * RECORDS_A_ROUND, group):
            assert time.monotonic() < deadline, f"the input was not copied: {log.read_text()}"
            if application.poll() is not None:  # fenced, or an error was final
                application = program.start(fleet.bootstrap, "in", "out", group, name, log=log)
            time.sleep(0.5)
    assert sorted(each[::-1] for each in committed(fleet)) == each_once(), log.read_text()


def names_apart(fleet: FleetOfBrokers) -> tuple[str, str]:
    """A group and a transactional id, coordinated by two nodes."""
    producer(fleet, "first")
    until(lambda: is_copied(fleet, 0), "no group is coordinated")
    of_first = coordinator(fleet, "first")
    group = next(
        each for each in map("group-{}".format, range(99))
        if group_coordinator(fleet, each) not in {of_first, -1}
    )  # fmt: skip
    return group, "first"
