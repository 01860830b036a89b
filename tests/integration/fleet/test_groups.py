"""Groups of a fleet: each has a coordinator, and goes on with another one when that is gone."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.kafka.kafka_oracle import run_tool
from tests.support.patience import until
from tests.support.tier.s3_server import S3Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PARTITIONS = 4
PATIENCE = 90.0
SETTINGS = {"offsets.topic.num.partitions": "6", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture
def fleet(both: tuple[PostgresServer, S3Server], tmp_path: Path) -> Iterator[FleetOfBrokers]:
    with some_brokers(tmp_path, both, (1, 2, 3), SETTINGS) as brokers:
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        admin.create_topics([NewTopic("t", PARTITIONS)])["t"].result(30)
        yield brokers


class Readers:
    """Members of one group, which commit what they have read, again and again."""

    def __init__(self, fleet: FleetOfBrokers, protocol: str, group: str = "readers") -> None:
        self.group = group
        self.values: set[int] = set()
        self.acknowledged: dict[int, int] = {}
        """The highest offset of each partition that a coordinator said it has."""
        self._members = [
            Consumer({
                "bootstrap.servers": fleet.bootstrap, "group.id": group,
                "group.protocol": protocol, "auto.offset.reset": "earliest",
                "enable.auto.commit": False, "topic.metadata.refresh.interval.ms": 1000,
                "reconnect.backoff.max.ms": 200,
                **({"session.timeout.ms": 10_000} if protocol == "classic" else {}),
            })
            for _ in range(2)
        ]  # fmt: skip
        for each in self._members:
            each.subscribe(["t"])

    def read_until(self, count: int) -> None:
        """Each value up to `count` was read, and a coordinator has acknowledged all offsets."""
        end = time.monotonic() + PATIENCE
        while len(self.values) < count or sum(self.acknowledged.values()) < count:
            seen = f"of {count} {len(self.values)} were read, committed: {self.acknowledged}"
            assert time.monotonic() < end, seen
            for each in self._members:
                for message in each.consume(200, 0.2):
                    if message.error() is None:
                        self.values.add(int(message.value()))
                self._commit(each)

    @property
    def assigned(self) -> int:
        return sum(len(each.assignment()) for each in self._members)

    def close(self) -> None:
        for each in self._members:
            each.close()

    def _commit(self, member: Consumer) -> None:
        """The coordinator may move, and there may be nothing to commit: the next one counts."""
        with suppress(KafkaException):
            for each in member.commit(asynchronous=False) or ():
                if each.error is None and each.offset >= 0:
                    known = self.acknowledged.get(each.partition, 0)
                    self.acknowledged[each.partition] = max(known, each.offset)


class Writer:
    """An idempotent producer of numbers."""

    def __init__(self, fleet: FleetOfBrokers) -> None:
        self._producer = Producer({
            "bootstrap.servers": fleet.bootstrap, "enable.idempotence": True,
            "message.timeout.ms": 120_000, "topic.metadata.refresh.interval.ms": 1000,
        })  # fmt: skip
        self.sent = 0

    def send(self, count: int) -> None:
        for _ in range(count):
            self._producer.produce("t", str(self.sent).encode(), partition=self.sent % PARTITIONS)
            self.sent += 1
        assert self._producer.flush(60) == 0


def coordinator(admin: AdminClient, group: str) -> int:
    found = admin.describe_consumer_groups([group])[group].result(30)
    return int(found.coordinator.id)


def listed(admin: AdminClient) -> set[str]:
    """Names, or those that could be had: a node may still be reading its groups."""
    admin.list_topics(timeout=10)  # it asks the nodes that it knows, and those were some of them
    return {each.group_id for each in admin.list_consumer_groups().result(30).valid}


def committed(fleet: FleetOfBrokers, group: str) -> int:
    """The sum of all offsets; not by the admin client, which NOT_COORDINATOR crashes."""
    asker = Consumer({"bootstrap.servers": fleet.bootstrap, "group.id": group})
    places, end = [TopicPartition("t", each) for each in range(PARTITIONS)], time.monotonic()
    while True:
        try:
            found = asker.committed(places, timeout=10)
        except KafkaException:  # the coordinator is moving
            assert time.monotonic() < end + PATIENCE
            time.sleep(0.2)
        else:
            asker.close()
            return sum(each.offset for each in found)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_goes_on_when_its_coordinator_is_killed(
    fleet: FleetOfBrokers, protocol: str
) -> None:
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    writer, readers = Writer(fleet), Readers(fleet, protocol)
    writer.send(1000)
    readers.read_until(1000)
    gone = coordinator(admin, readers.group)
    fleet.kill(gone)
    writer.send(1000)
    readers.read_until(2000)
    assert coordinator(admin, readers.group) != gone
    fleet.start(gone, SETTINGS)
    writer.send(1000)
    readers.read_until(3000)
    assert readers.assigned == PARTITIONS
    assert committed(fleet, readers.group) == 3000
    readers.close()


def all_deleted(admin: AdminClient, refusals: list[str]) -> bool:
    """False while coordinators move: those that are left are asked for again."""
    left = listed(admin)
    if left:
        futures = admin.delete_consumer_groups(sorted(left), request_timeout=10)
        for name, future in futures.items():
            try:
                future.result(15)
            except (KafkaException, TimeoutError) as error:
                refusals.append(f"{name}: {error!r}")
    return not left


def test_offsets_are_where_they_were_whoever_coordinates(fleet: FleetOfBrokers) -> None:
    """Of several groups, through each node, and after all nodes have begun again one by one."""
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    Writer(fleet).send(400)
    for number in range(5):
        readers = Readers(fleet, "classic", f"group-{number}")
        readers.read_until(400)
        readers.close()
    for node_id in (1, 2, 3):
        fleet.stop(node_id)
        fleet.start(node_id, SETTINGS)
    fleet.wait_until_met()
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    names = {f"group-{each}" for each in range(5)}
    until(lambda: listed(admin) == names, "groups are missing")
    for number in range(5):
        assert committed(fleet, f"group-{number}") == 400
    refusals = list[str]()
    until(lambda: all_deleted(admin, refusals), lambda: f"groups were left: {refusals[-9:]}")


def test_tools_that_ask_each_broker_do_not_wait_for_one_that_is_gone(fleet: FleetOfBrokers) -> None:
    """Kafka's list of groups has no time-out per broker: it would wait, and fail."""
    Writer(fleet).send(8)
    readers = Readers(fleet, "classic")
    readers.read_until(8)
    readers.close()
    fleet.kill(3)
    until(
        lambda: listed_by_kafka(fleet) == [readers.group],
        "the group is not listed by those that live",
    )


def listed_by_kafka(fleet: FleetOfBrokers) -> list[str]:
    """Names; none while its coordinator moves."""
    with suppress(AssertionError):
        return run_tool(GROUPS_TOOL, "--bootstrap-server", fleet.bootstrap, "--list").split()
    return []
