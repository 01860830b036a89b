"""Consumers that subscribe: confluent-kafka, kafka-python and aiokafka share topics in groups.

Each library's members come, share the partitions, leave, return as static members; what one has
committed another goes on from. The broker holds the first rebalance back for 100 ms only.
"""

import asyncio
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer
from kafka.structs import TopicPartition as PythonPartition

from tests.conformance.conftest import create_topic, start_node
from tests.support.kafka.kafka_oracle import start_kafka

EXERCISES = {
    "confluent-kafka": "groups: range, round robin, cooperative, static members",
    "kafka-python": "groups",
    "aiokafka": "groups",
}

QUICK = {
    "group.initial.rebalance.delay.ms": "100",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "5",
    **({"offsets.topic.replication.factor": "1"} if start_node is start_kafka else {}),
}
PARTITIONS = 4
PATIENCE_SECONDS = 40


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of a broker that lets groups begin at once."""
    with start_node(tmp_path_factory.mktemp("groups") / "data", QUICK) as node:
        yield node.bootstrap


@pytest.fixture
def topic(quick: str) -> str:
    return create_topic(AdminClient({"bootstrap.servers": quick}), fresh("topic"), PARTITIONS)


def fresh(kind: str) -> str:
    return f"{kind}-{uuid.uuid4().hex[:8]}"


def produce(bootstrap: str, topic: str, count: int) -> None:
    """So many records to each partition."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        for partition in range(PARTITIONS):
            producer.produce(topic, b"%d" % number, partition=partition)
    assert producer.flush(30) == 0


def until(true: Callable[[], bool], what: str) -> None:
    """Polls something until it holds."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS} s: {what}"


def confluent(bootstrap: str, group: str, **settings: object) -> Consumer:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 200,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "reconnect.backoff.max.ms": 500,
            **named,
        }
    )


def parts(consumer: Consumer) -> set[int]:
    return {each.partition for each in consumer.assignment()}


def share(consumers: list[Consumer]) -> Callable[[], bool]:
    """Whether these have all partitions among them, each one some and none twice."""

    def shared() -> bool:
        for each in consumers:
            each.poll(0.05)
        given = [parts(each) for each in consumers]
        everything = sorted(number for each in given for number in each)
        return all(given) and everything == list(range(PARTITIONS))

    return shared


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_confluent_members_share_and_take_over(quick: str, topic: str, strategy: str) -> None:
    group = fresh("group")
    settings = {"partition_assignment_strategy": strategy}
    with closing(confluent(quick, group, **settings)) as first:
        first.subscribe([topic])
        until(share([first]), "one member has all")
        with closing(confluent(quick, group, **settings)) as second:
            second.subscribe([topic])
            until(share([first, second]), "two members share")
        until(share([first]), "the one that stays has all again")


def test_confluent_goes_on_from_what_was_committed_and_seeks(quick: str, topic: str) -> None:
    produce(quick, topic, 10)
    group = fresh("group")
    with closing(confluent(quick, group)) as reader:
        reader.subscribe([topic])
        first = [read_one(reader) for _ in range(10)]
        reader.commit(asynchronous=False)
        committed = reader.committed([TopicPartition(topic, n) for n in range(PARTITIONS)])
        assert sum(max(each.offset, 0) for each in committed) == 10
    with closing(confluent(quick, group)) as follower:
        follower.subscribe([topic])
        rest = [read_one(follower) for _ in range(4 * 10 - 10)]
        assert len({*first, *rest}) == 40
        follower.seek(TopicPartition(topic, 2, 5))
        assert read_one(follower) == (2, 5)


def read_one(consumer: Consumer) -> tuple[int, int]:
    message = consumer.poll(PATIENCE_SECONDS)
    assert message is not None
    assert message.error() is None
    return message.partition(), message.offset()


def test_a_static_member_comes_back_to_its_part_without_a_rebalance(quick: str, topic: str) -> None:
    group, admin = fresh("group"), AdminClient({"bootstrap.servers": quick})
    with closing(confluent(quick, group, group_instance_id="a")) as first:
        first.subscribe([topic])
        with closing(confluent(quick, group, group_instance_id="b")) as second:
            second.subscribe([topic])
            until(share([first, second]), "two static members share")
            mine, theirs = parts(first), parts(second)
        with closing(confluent(quick, group, group_instance_id="b")) as back:
            back.subscribe([topic])
            until(lambda: back.poll(0.05) is None and parts(back) == theirs, "it has its part")
            first.poll(0.5)
            assert parts(first) == mine
            described = admin.describe_consumer_groups([group])[group].result(30)
            assert {each.group_instance_id for each in described.members} == {"a", "b"}


def test_a_killed_consumer_is_replaced_within_its_session(
    quick: str, topic: str, tmp_path: Path
) -> None:
    group = fresh("group")
    take_over(quick, topic, group, "1500", next_one=confluent(quick, group), said=tmp_path / "said")


def take_over(
    quick: str, topic: str, group: str, member: str, *, next_one: Consumer, said: Path
) -> None:
    """A member is killed at work, and the next one reads what that did not; in all everything."""
    produce(quick, topic, 5)
    command = [sys.executable, "-m", "tests.conformance.group_member", quick, topic, group, member]
    with said.open("wb") as out:
        child = subprocess.Popen(command, stdout=out)
    try:
        until(lambda: said.read_text().count("read") == 20, "the first has read everything")
        produce(quick, topic, 5)
        until(lambda: said.read_text().count("read") > 20, "it is at work")
    finally:
        child.kill()
        child.wait(30)
    seen = {tuple(line.split()[1:]) for line in said.read_text().splitlines() if "read" in line}
    with closing(next_one) as heir:
        heir.subscribe([topic])
        while len(seen) < 40:
            seen.add(tuple(map(str, read_one(heir))))
    assert len(seen) == 40


def test_kafka_python_members_share_commit_and_go_on(quick: str, topic: str) -> None:
    produce(quick, topic, 10)
    group = fresh("group")
    settings = {
        "bootstrap_servers": quick, "group_id": group, "auto_offset_reset": "earliest",
        "enable_auto_commit": False, "heartbeat_interval_ms": 200, "session_timeout_ms": 6000,
    }  # fmt: skip
    with ExitStack() as stack:
        first = stack.enter_context(closing(KafkaConsumer(topic, **settings)))
        records: list[object] = []

        def reads_all() -> bool:
            for batch in first.poll(timeout_ms=100).values():
                records.extend(batch)
            return len(records) == 40

        until(reads_all, "one member reads all")
        first.commit()
        second = stack.enter_context(closing(KafkaConsumer(topic, **settings)))

        def both() -> bool:
            first.poll(timeout_ms=50)
            second.poll(timeout_ms=50)
            given = len(first.assignment()), len(second.assignment())
            return given == (2, 2)

        until(both, "two members share")
        for number in range(PARTITIONS):
            assert second.committed(PythonPartition(topic, number)) == 10


async def test_aiokafka_members_share_commit_and_go_on(quick: str, topic: str) -> None:
    produce(quick, topic, 10)

    def member() -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            topic, bootstrap_servers=quick, group_id=group, auto_offset_reset="earliest",
            enable_auto_commit=False, heartbeat_interval_ms=200, session_timeout_ms=6000,
        )  # fmt: skip

    group = fresh("group")
    async with member() as first:
        count = 0
        while count < 40:
            batches = await asyncio.wait_for(first.getmany(timeout_ms=1000), PATIENCE_SECONDS)
            count += sum(map(len, batches.values()))
        await first.commit()
        async with member() as second:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while (len(first.assignment()), len(second.assignment())) != (2, 2):
                    await first.getmany(timeout_ms=50)
                    await second.getmany(timeout_ms=50)
            for partition in second.assignment():
                assert await second.committed(partition) == 10
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(first.assignment()) != PARTITIONS:
                await first.getmany(timeout_ms=50)
