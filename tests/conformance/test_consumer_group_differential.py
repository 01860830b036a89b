"""The new protocol of consumer groups, spoken word by word to a real Kafka 4.3 and to us.

Both hear the same heartbeats, joins and commits, and have to give the same codes, epochs and
numbers of partitions. Member ids are the client's own, so that nothing is left to chance.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from broker.groups.consumer.embedded import EmbeddedAssignment, MemberPartitions, Subscription
from protocol.apis import (
    consumer_group_describe,
    consumer_group_heartbeat,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    metadata,
    offset_commit,
    offset_fetch,
    sync_group,
)
from protocol.codec import decode, encode_bytes
from tests.conformance.conftest import create_topic
from tests.support.clients.wire import WireClient
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.worlds.broker_process import start_broker

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
COMMON = {
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "5000",
}
KAFKA = COMMON | {
    "offsets.topic.replication.factor": "1",
    "group.consumer.assignment.interval.ms": "0",
}
JOIN, LEAVE, AWAY = 0, -1, -2


class Side:
    """One broker, and all that it said."""

    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self.bootstrap = bootstrap
        self.wire = WireClient(host, int(port))
        self.said: list[object] = []
        self.owned: dict[str, dict[UUID, list[int]]] = {}
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for name, partitions in (("one", 4), ("two", 2)):
            create_topic(admin, name, partitions)
        self._wait_for_coordinator()
        topics = self.wire.call(metadata.MetadataRequest(topics=None), 12).topics
        self.ids = {each.name: each.topic_id for each in topics}

    def _wait_for_coordinator(self) -> None:
        asked = find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        until(lambda: self.wire.call(asked, 4).coordinators[0].error_code == 0)
        until(lambda: self.wire.call(list_groups.ListGroupsRequest(), 5).error_code == 0)
        until(lambda: self.commit("ready", "", -1, of="one") == 0)
        self.said.clear()

    def beat(self, group: str, member: str, epoch: int, **said: Any) -> Any:
        """One heartbeat; who joins says everything. What is owned is said as it was told."""
        version = said.pop("version", 1)
        if epoch == JOIN:
            said = {"rebalance_timeout_ms": 5000, "topic_partitions": [], **said}
            self.owned[member] = {}
        if said.pop("owns", False):
            said["topic_partitions"] = [
                consumer_group_heartbeat.ConsumerGroupHeartbeatTopicPartitions(
                    topic_id=topic, partitions=partitions
                )
                for topic, partitions in self.owned[member].items()
            ]
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, **said
        )
        answer = self.wire.call(request, version)
        count = None
        if answer.assignment is not None:
            parts = answer.assignment.topic_partitions
            self.owned[member] = {each.topic_id: each.partitions for each in parts}
            count = sum(len(each.partitions) for each in parts)
        self.said.append((member, answer.error_code, answer.member_epoch, count))
        return answer

    def describe(self, group: str) -> Any:
        request = consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[group])
        found = self.wire.call(request, 1).groups[0]
        self.said.append(
            (
                found.error_code, found.group_state, found.group_epoch, found.assignment_epoch,
                found.assignor_name,
                sorted(
                    (
                        each.member_id, each.member_epoch, each.instance_id, each.member_type,
                        each.subscribed_topic_names, each.subscribed_topic_regex,
                        _count(each.assignment), _count(each.target_assignment),
                    )
                    for each in found.members
                ),
            )
        )  # fmt: skip
        return found

    def commit(self, group: str, member: str, epoch: int, *, of: str, version: int = 9) -> int:
        part = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        topic = offset_commit.OffsetCommitRequestTopic(name=of, partitions=[part])
        request = offset_commit.OffsetCommitRequest(
            group_id=group, member_id=member, generation_id_or_member_epoch=epoch, topics=[topic]
        )
        code: int = self.wire.call(request, version).topics[0].partitions[0].error_code
        self.said.append(("commit", code))
        return code

    def fetch(self, group: str, member: str | None, epoch: int) -> None:
        asked = offset_fetch.OffsetFetchRequestGroup(
            group_id=group, member_id=member, member_epoch=epoch, topics=None
        )
        found = self.wire.call(offset_fetch.OffsetFetchRequest(groups=[asked]), 9).groups[0]
        offsets = [
            (topic.name, part.partition_index, part.committed_offset)
            for topic in found.topics
            for part in topic.partitions
        ]
        self.said.append(("fetch", found.error_code, offsets))

    def join(self, group: str, member: str, *topics: str, **who: Any) -> Any:
        """A classic consumer joins."""
        owned = [MemberPartitions(topic=name, partitions=p) for name, p in who.pop("owned", ())]
        said = b"\0\1" + encode_bytes(Subscription(topics=list(topics), owned=owned), 1)
        request = join_group.JoinGroupRequest(
            group_id=group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=member,
            protocol_type="consumer",
            protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=said)],
            **who,
        )
        answer = self.wire.call(request, 9)
        self.said.append(("join", answer.error_code, answer.generation_id, answer.protocol_name))
        return answer

    def sync(self, group: str, member: str, generation: int, **parts: bytes) -> dict[str, int]:
        request = sync_group.SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                sync_group.SyncGroupRequestAssignment(member_id=member, assignment=part)
                for part in parts.values()
            ],
        )
        answer = self.wire.call(request, 5)
        told = {}
        if answer.assignment:
            read = decode(EmbeddedAssignment, 1, answer.assignment, 2)
            told = {each.topic: len(each.partitions) for each in read.assigned}
        self.said.append(("sync", answer.error_code, told))
        return told

    def classic_beat(self, group: str, member: str, generation: int) -> int:
        request = heartbeat.HeartbeatRequest(
            group_id=group, member_id=member, generation_id=generation
        )
        code: int = self.wire.call(request, 4).error_code
        self.said.append(("heartbeat", code))
        return code

    def classic_leave(self, group: str, member: str) -> None:
        leaving = [leave_group.MemberIdentity(member_id=member)]
        answer = self.wire.call(leave_group.LeaveGroupRequest(group_id=group, members=leaving), 5)
        self.said.append(("leave", [each.error_code for each in answer.members]))

    def kinds(self, *wanted: str) -> None:
        listed = self.wire.call(list_groups.ListGroupsRequest(), 5).groups
        self.said.append(
            sorted(
                (each.group_id, each.group_type, each.group_state, each.protocol_type)
                for each in listed
                if each.group_id in wanted
            )
        )


def _count(assignment: Any) -> int:
    return sum(len(each.partitions) for each in assignment.topic_partitions)


def until(reached: Callable[[], bool], within_seconds: float = 20) -> None:
    end = time.monotonic() + within_seconds
    while not reached():
        assert time.monotonic() < end, "it does not come to pass"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Kafka, and ours."""
    root = tmp_path_factory.mktemp("epochs")
    with ExitStack() as stack:
        kafka = stack.enter_context(start_kafka(root / "kafka", KAFKA))
        ours = stack.enter_context(start_broker(root / "ours", COMMON))
        made = Side(kafka.bootstrap), Side(ours.bootstrap)
        for each in made:
            stack.callback(each.wire.close)
        yield made


def two_share_one_leaves(side: Side) -> None:
    g = "shared"
    side.beat(g, "a", JOIN, subscribed_topic_names=["one"])
    side.describe(g)
    side.beat(g, "a", 2)
    side.beat(g, "b", JOIN, subscribed_topic_names=["one"])
    side.describe(g)
    side.beat(g, "a", 2)  # is told to give back
    side.beat(g, "b", 3)
    side.describe(g)
    side.beat(g, "a", 2, owns=True)
    side.beat(g, "b", 3)
    side.describe(g)
    for epoch in (0, 1, 2, 3, 4):
        side.commit(g, "b", epoch, of="one")
    side.commit(g, "nobody", 3, of="one")
    side.commit(g, "", -1, of="one")
    side.commit(g, "b", 3, of="one", version=8)
    side.fetch(g, None, -1)
    side.fetch(g, "b", 3)
    side.fetch(g, "b", 2)
    side.fetch(g, "nobody", 3)
    side.beat(g, "b", LEAVE)
    side.describe(g)
    side.beat(g, "a", 3)
    side.describe(g)
    side.kinds(g)
    side.beat(g, "a", LEAVE)
    side.describe(g)
    side.commit(g, "", -1, of="one")
    side.kinds(g)


def epochs_are_fenced(side: Side) -> None:
    g = "fenced"
    side.beat(g, "a", JOIN, subscribed_topic_names=["one"])
    side.beat(g, "a", 8)
    side.beat(g, "a", 2, subscribed_topic_names=["two"])
    side.beat(g, "a", 2, owns=True)
    side.beat(g, "a", 1, subscribed_topic_names=["two"])
    side.beat(g, "unknown", 2)
    side.beat(g, "unknown", LEAVE)
    side.beat("nothing", "a", 1)
    side.beat(g, "a", JOIN, subscribed_topic_names=["none-such"])
    side.describe(g)


def nonsense_is_refused(side: Side) -> None:
    g = "nonsense"
    for said in (
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {},
        {"subscribed_topic_names": ["one"], "server_assignor": "sticky"},
        {"subscribed_topic_names": ["one"], "instance_id": ""},
        {"subscribed_topic_names": ["one"], "rack_id": ""},
        {"subscribed_topic_regex": "(("},
        {"subscribed_topic_regex": "(?=a)"},
    ):
        side.beat(g, "a", JOIN, **said)
    side.beat("", "a", JOIN, subscribed_topic_names=["one"])
    side.beat(g, "", JOIN, subscribed_topic_names=["one"])
    side.beat(g, "a", -3)
    side.beat(g, "a", AWAY)
    side.beat(g, "", LEAVE, version=0)
    side.describe(g)
    side.kinds(g)


def static_members_come_back(side: Side) -> None:
    g = "static"
    side.beat(g, "a", JOIN, subscribed_topic_names=["one"], instance_id="i")
    side.beat(g, "b", JOIN, subscribed_topic_names=["one"], instance_id="i")
    side.beat(g, "c", JOIN, subscribed_topic_names=["one"], instance_id="j")
    side.beat(g, "a", 2, instance_id="i")
    side.beat(g, "a", 2, instance_id="i", owns=True)
    side.beat(g, "c", 3, instance_id="j")
    side.beat(g, "b", 2, instance_id="i")
    side.beat(g, "a", AWAY, instance_id="i")
    side.describe(g)
    side.beat(g, "b", JOIN, subscribed_topic_names=["one"], instance_id="i")
    side.describe(g)
    side.beat(g, "a", 3, instance_id="i")
    side.beat(g, "b", LEAVE, instance_id="i")
    side.describe(g)
    side.beat(g, "c", 3, instance_id="k")


def topics_grow(side: Side) -> None:
    g = "growing"
    side.beat(g, "a", JOIN, subscribed_topic_names=["two", "three"])
    admin = AdminClient({"bootstrap.servers": side.bootstrap})
    create_topic(admin, "three", 3)
    until(lambda: side.beat(g, "a", 2).member_epoch == 3)
    del side.said[1:-1]
    admin.create_partitions([NewPartitions("three", 5)])["three"].result(30)
    until(lambda: side.beat(g, "a", 3).member_epoch == 4)
    del side.said[2:-1]
    side.describe(g)


def expressions_match(side: Side) -> None:
    g = "expressions"
    side.beat(g, "a", JOIN, subscribed_topic_regex="^(one|tw.)$")
    until(lambda: side.beat(g, "a", 1).member_epoch == 2)
    del side.said[1:-1]
    side.describe(g)
    side.beat(g, "b", JOIN, subscribed_topic_regex=".*")
    side.beat(g, "b", LEAVE)
    side.beat(g, "a", 2, subscribed_topic_regex="", subscribed_topic_names=["one"])
    side.describe(g)


def expressions_of_the_brokers_own_topics_match(side: Side) -> None:
    """Those without `__` are another matter: see docs/differences.md."""
    g = "own topics"
    side.beat(g, "a", JOIN, subscribed_topic_regex="__consumer_off.*|tw.")
    until(lambda: side.beat(g, "a", 1).member_epoch == 2)
    del side.said[1:-1]
    side.describe(g)
    assert len(side.owned["a"]) == 2


def each_assignor(side: Side) -> None:
    for assignor in ("range", "uniform"):
        g = f"by-{assignor}"
        for number, member in enumerate("abc"):
            is_other = member == "c" and assignor == "range"  # the other one leaves it to chance
            names = ["two"] if is_other else ["one", "two"]
            side.beat(g, member, JOIN, subscribed_topic_names=names, server_assignor=assignor)
            for other in "abc"[: number + 1]:
                for _ in range(3):
                    side.beat(g, other, epoch_of(side, g, other), owns=True)
        side.describe(g)


def epoch_of(side: Side, group: str, member: str) -> int:
    found = side.describe(group)
    side.said.pop()
    return next(each.member_epoch for each in found.members if each.member_id == member)


def a_classic_group_is_upgraded_and_back(side: Side) -> None:
    g = "moving"
    first = side.join(g, "", "one")
    member = side.join(g, first.member_id, "one").member_id
    parts = [MemberPartitions(topic="one", partitions=[0, 1, 2, 3])]
    side.sync(g, member, 1, a=b"\0\1" + encode_bytes(EmbeddedAssignment(assigned=parts), 1))
    side.kinds(g)
    side.beat(g, "new", JOIN, subscribed_topic_names=["one"])
    types = sorted(each.member_type for each in side.describe(g).members)
    side.said[-1] = types  # ids that the broker makes differ
    side.kinds(g)
    side.classic_beat(g, member, 1)
    side.join(g, member, "one", owned=[("one", [0, 1, 2, 3])])
    side.sync(g, member, 1)
    side.classic_beat(g, member, 1)
    side.beat(g, "new", 2)
    side.join(g, member, "one", owned=[("one", [0, 1])])
    side.sync(g, member, 2)
    side.classic_beat(g, member, 2)
    side.beat(g, "new", 2)
    side.commit(g, member, 2, of="one")
    side.commit(g, member, 3, of="one")
    side.sync(g, "new", 2)
    side.classic_beat(g, "new", 2)
    side.beat(g, "new", LEAVE)
    side.kinds(g)
    side.classic_beat(g, member, 3)
    side.join(g, member, "one")
    side.fetch(g, None, -1)
    side.classic_leave(g, member)
    side.kinds(g)


@pytest.mark.parametrize(
    "story",
    [
        two_share_one_leaves, epochs_are_fenced, nonsense_is_refused, static_members_come_back,
        topics_grow, expressions_match,
        expressions_of_the_brokers_own_topics_match, each_assignor,
        a_classic_group_is_upgraded_and_back,
    ],
)  # fmt: skip
def test_both_say_the_same(sides: tuple[Side, Side], story: Callable[[Side], None]) -> None:
    for side in sides:
        side.said.clear()
        story(side)
    kafka, ours = sides
    assert ours.said == kafka.said
