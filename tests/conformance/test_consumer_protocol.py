"""Real clients by the new protocol of groups (KIP-848): the Java client's, and librdkafka's.

Two share a topic, one is killed, the other takes over; the broker is killed, commits are kept; a
real Kafka goes on with the group where we stopped, members and all.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupType,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import create_topic
from tests.conformance.test_group_clients import (
    PARTITIONS,
    fresh,
    parts,
    produce,
    read_one,
    share,
    take_over,
    until,
)
from tests.conformance.test_group_restart import NOT_YET
from tests.conformance.test_kill import free_address
from tests.support.kafka.kafka_oracle import SCRIPT, available, start_kafka
from tests.support.worlds.broker_process import start_broker

EXERCISES = {
    "confluent-kafka": "groups by the new protocol (KIP-848), with kill -9, to a Kafka and back",
    "kafka-clients": "groups by the new protocol (KIP-848), with kill -9",
}

needs_java = pytest.mark.skipif(not available(), reason="needs java and mvn")

QUICK = {
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "5",
}
QUICK_KAFKA = QUICK | {
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.replication.factor": "1",
}


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with start_broker(tmp_path_factory.mktemp("protocol") / "data", QUICK) as node:
        yield node.bootstrap


@pytest.fixture
def topic(quick: str) -> str:
    return create_topic(AdminClient({"bootstrap.servers": quick}), fresh("topic"), PARTITIONS)


def consumer(bootstrap: str, group: str, **settings: object) -> Consumer:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "reconnect.backoff.max.ms": 500,
            **named,
        }
    )


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_members_share_and_take_over(quick: str, topic: str, assignor: str) -> None:
    group, admin = fresh("group"), AdminClient({"bootstrap.servers": quick})
    settings = {"group_remote_assignor": assignor}
    with closing(consumer(quick, group, **settings)) as first:
        first.subscribe([topic])
        until(share([first]), "one member has all")
        with closing(consumer(quick, group, **settings)) as second:
            second.subscribe([topic])
            until(share([first, second]), "two members share")
            told = admin.describe_consumer_groups([group])[group].result(30)
            assert (told.type, told.state) == (
                ConsumerGroupType.CONSUMER,
                ConsumerGroupState.STABLE,
            )
            assert told.partition_assignor == assignor
            assert sorted(len(m.assignment.topic_partitions) for m in told.members) == [2, 2]
        until(share([first]), "the one that stays has all again")


def test_a_subscription_by_expression_follows_the_topics(quick: str, topic: str) -> None:
    produce(quick, topic, 1)
    with closing(consumer(quick, fresh("group"))) as reader:
        reader.subscribe([f"^{topic[:-2]}.*"])
        assert {read_one(reader) for _ in range(PARTITIONS)} == {(n, 0) for n in range(PARTITIONS)}


def test_a_static_member_comes_back_to_its_part(quick: str, topic: str) -> None:
    group = fresh("group")
    with closing(consumer(quick, group, group_instance_id="a")) as first:
        first.subscribe([topic])
        with closing(consumer(quick, group, group_instance_id="b")) as second:
            second.subscribe([topic])
            until(share([first, second]), "two static members share")
            mine, theirs = parts(first), parts(second)
        with closing(consumer(quick, group, group_instance_id="b")) as back:
            back.subscribe([topic])
            until(lambda: back.poll(0.05) is None and parts(back) == theirs, "it has its part")
            first.poll(0.5)
            assert parts(first) == mine


def test_a_killed_consumer_is_replaced_within_its_session(
    quick: str, topic: str, tmp_path: Path
) -> None:
    group = fresh("group")
    take_over(
        quick, topic, group, "consumer", next_one=consumer(quick, group), said=tmp_path / "said"
    )


def test_a_group_moves_to_the_new_protocol_and_back_at_work(quick: str, topic: str) -> None:
    group, admin = fresh("group"), AdminClient({"bootstrap.servers": quick})
    classic = {
        "group_protocol": "classic",
        "session_timeout_ms": 6000,
        "heartbeat_interval_ms": 200,
    }

    def kind() -> ConsumerGroupType:
        listed = admin.list_consumer_groups().result(30).valid
        return next(each.type for each in listed if each.group_id == group)

    with closing(consumer(quick, group, **classic)) as old:
        old.subscribe([topic])
        until(share([old]), "one member has all")
        with closing(consumer(quick, group)) as new:
            new.subscribe([topic])
            until(share([old, new]), "one of each protocol share")
            assert kind() is ConsumerGroupType.CONSUMER
        until(share([old]), "the old one has all again")
        assert kind() is ConsumerGroupType.CLASSIC


@pytest.mark.kafka
@needs_java
def test_java_consumers_take_over_and_outlive_the_broker(tmp_path: Path) -> None:
    address, data = free_address(), tmp_path / "data"
    node = start_broker(data, QUICK, listen=address)
    topic = create_topic(AdminClient({"bootstrap.servers": address}), "t", PARTITIONS)
    produce(address, topic, 10)
    first, second = (JavaConsumer(address, topic, tmp_path / name) for name in ("a", "b"))
    try:
        until(lambda: len(first.has()) == len(second.has()) == 2, "two share")
        assert not first.has() & second.has()
        first.kill()
        until(lambda: len(second.has()) == PARTITIONS, "the other one takes over")
        node.kill()
        node = start_broker(data, QUICK, listen=address)
        produce(address, topic, 10)
        until(lambda: second.committed() == dict.fromkeys(range(PARTITIONS), 20), "it goes on")
        seen = first.read() | second.read()
        assert seen == {(part, offset) for part in range(PARTITIONS) for offset in range(20)}
    finally:
        first.kill()
        second.kill()
        node.kill()


class JavaConsumer:
    """Kafka's verifiable consumer as a process: what it was given, has read and committed."""

    def __init__(self, address: str, topic: str, out: Path) -> None:
        self._out = out
        tool = [sys.executable, str(SCRIPT), "tool", "org.apache.kafka.tools.VerifiableConsumer"]
        with out.open("wb") as said, out.with_suffix(".err").open("wb") as wrong:
            self._process = subprocess.Popen(
                [
                    *tool, "--bootstrap-server", address, "--topic", topic, "--group-id", "java",
                    "--group-protocol", "consumer", "--reset-policy", "earliest", "--verbose",
                ],
                stdout=said, stderr=wrong,
            )  # fmt: skip

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.wait(30)

    def _events(self, name: str) -> list[dict[str, object]]:
        time.sleep(0.1)
        lines = self._out.read_text().splitlines()
        events = [json.loads(line) for line in lines if line.endswith("}")]
        return [each for each in events if each["name"] == name]

    def has(self) -> set[int]:
        """The partitions that it has."""
        found: set[int] = set()
        time.sleep(0.1)
        for line in self._out.read_text().splitlines():
            event = json.loads(line) if line.endswith("}") else {"name": ""}
            given = {each["partition"] for each in event.get("partitions", ())}
            if event["name"] == "partitions_assigned":
                found |= given
            elif event["name"] == "partitions_revoked":
                found -= given
        return found

    def read(self) -> set[tuple[int, int]]:
        """Partition and offset of each record."""
        return {
            (each["partition"], each["offset"])  # type: ignore[misc]
            for each in self._events("record_data")
        }

    def committed(self) -> dict[int, int]:
        """What it has committed last."""
        found: dict[int, int] = {}
        for event in self._events("offsets_committed"):
            if event["success"]:
                for each in event["offsets"]:  # type: ignore[attr-defined]
                    found[each["partition"]] = each["offset"]
        return found


@pytest.mark.kafka
@needs_java
def test_a_real_kafka_goes_on_with_the_group_and_its_member_and_we_with_its(
    tmp_path: Path,
) -> None:
    address, data = free_address(), tmp_path / "data"
    with start_kafka(data, QUICK_KAFKA, listen=address):
        topic = create_topic(AdminClient({"bootstrap.servers": address}), "t", PARTITIONS)
        produce(address, topic, 10)
        reader = consumer(address, "g")
        reader.subscribe([topic])
        seen = {read_one(reader) for _ in range(5)}
        reader.commit(asynchronous=False)
    try:
        for start, settings in ((start_broker, QUICK), (start_kafka, QUICK_KAFKA)):
            with start(data, settings, listen=address):
                admin = AdminClient({"bootstrap.servers": address})
                until(lambda: members_of(admin, "g") == 1, "it is still a member")  # noqa: B023
                before = len(seen)
                seen |= {read_one(reader) for _ in range(5)}
                assert len(seen) == before + 5
                assert parts(reader) == set(range(PARTITIONS))
                reader.commit(asynchronous=False)
                places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
                offsets = [each.offset for each in reader.committed(places, timeout=20)]
                assert sum(max(each, 0) for each in offsets) == len(seen)
    finally:
        reader.close()


def members_of(admin: AdminClient, group: str) -> int:
    """How many it has; a coordinator that has just begun may want to be asked again."""
    try:
        told = admin.describe_consumer_groups([group])[group].result(30)
    except KafkaException as error:
        if error.args[0].code() not in NOT_YET:
            raise
        return -1
    assert told.type is ConsumerGroupType.CONSUMER
    return len(told.members)
