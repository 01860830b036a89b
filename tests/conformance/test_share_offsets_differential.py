"""Offsets of share groups on a real Kafka 4.3 and on us: described, altered and deleted by the same
requests, with the same answers.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from protocol.apis import (
    alter_share_group_offsets,
    delete_groups,
    delete_share_group_offsets,
    describe_share_group_offsets,
    find_coordinator,
    metadata,
    read_share_group_state_summary,
    share_group_describe,
    share_group_heartbeat,
    write_share_group_state,
)
from tests.conformance.conftest import create_topic
from tests.conformance.test_consumer_group_differential import until
from tests.support.clients.wire import WireClient
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.worlds.broker_process import start_broker

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
COMMON = {"offsets.topic.num.partitions": "1", "share.coordinator.state.topic.num.partitions": "1"}
KAFKA = COMMON | {
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
RECORDS = 10
GROUPS, SHARES = 0, 2


def _fill(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for topic, partitions in (("one", 1), ("two", 2)):
        create_topic(admin, topic, partitions)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce("one", b"%d" % number)
    producer.flush(30)


class OffsetsSide:
    """One broker, and all that it said."""

    def __init__(self, bootstrap: str, *, is_new: bool = True) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self.wire = WireClient(host, int(port))
        self.said: list[object] = []
        if is_new:
            _fill(bootstrap)
        topics = self.wire.call(metadata.MetadataRequest(topics=None), 12).topics
        self.ids = {each.name: each.topic_id for each in topics}
        self.names = {topic_id: name for name, topic_id in self.ids.items()}
        text = urlsafe_b64encode(self.ids["one"].bytes).rstrip(b"=").decode()
        for kind, key in ((GROUPS, "g"), (SHARES, f"g:{text}:0")):
            asked = find_coordinator.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            until(lambda asked=asked: self.wire.call(asked, 6).coordinators[0].error_code == 0)
        until(lambda: self._describe("nobody", None)[0] != 15)

    def describe(self, group: str, topics: dict[str, Sequence[int]] | None) -> None:
        self.said.append(("described", group, topics, self._describe(group, topics)))

    def _describe(self, group: str, topics: dict[str, Sequence[int]] | None) -> tuple[Any, ...]:
        of = describe_share_group_offsets
        named = None
        if topics is not None:
            named = [
                of.DescribeShareGroupOffsetsTopic(topic_name=name, partitions=list(each))
                for name, each in topics.items()
            ]
        asked = of.DescribeShareGroupOffsetsGroup(group_id=group, topics=named)
        (told,) = self.wire.call(of.DescribeShareGroupOffsetsRequest(groups=[asked]), 1).groups
        found = [
            (topic.topic_name, self.names.get(topic.topic_id), p.partition_index, p.start_offset,
             p.lag, p.error_code)
            for topic in told.topics
            for p in topic.partitions
        ]  # fmt: skip
        return told.error_code, sorted(found, key=str)

    def alter(self, group: str, topics: dict[str, dict[int, int]]) -> None:
        of = alter_share_group_offsets
        named = [
            of.AlterShareGroupOffsetsTopic(
                topic_name=name,
                partitions=[
                    of.AlterShareGroupOffsetsPartition(partition_index=index, start_offset=offset)
                    for index, offset in each.items()
                ],
            )
            for name, each in topics.items()
        ]
        told = self.wire.call(of.AlterShareGroupOffsetsRequest(group_id=group, topics=named), 0)
        found = [
            (topic.topic_name, self.names.get(topic.topic_id), p.partition_index, p.error_code)
            for topic in told.responses
            for p in topic.partitions
        ]
        self.said.append(("altered", group, topics, told.error_code, sorted(found, key=str)))

    def delete(self, group: str, *topics: str) -> None:
        of = delete_share_group_offsets
        named = [of.DeleteShareGroupOffsetsTopic(topic_name=each) for each in topics]
        told = self.wire.call(of.DeleteShareGroupOffsetsRequest(group_id=group, topics=named), 0)
        found = [
            (each.topic_name, self.names.get(each.topic_id), each.error_code)
            for each in told.responses
        ]
        self.said.append(("deleted", group, topics, told.error_code, sorted(found, key=str)))

    def beat(self, group: str, member: str, epoch: int, *names: str) -> int:
        request = share_group_heartbeat.ShareGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            subscribed_topic_names=list(names) or None,
        )
        answer = self.wire.call(request, 1)
        self.said.append(("beat", group, member, answer.error_code))
        return int(answer.member_epoch)

    def group(self, group: str) -> None:
        asked = share_group_describe.ShareGroupDescribeRequest(group_ids=[group])
        (told,) = self.wire.call(asked, 1).groups
        self.said.append(("group", group, told.error_code, told.group_state))

    def remove(self, group: str) -> None:
        told = self.wire.call(delete_groups.DeleteGroupsRequest(groups_names=[group]), 2)
        self.said.append(("removed", group, told.results[0].error_code))

    def finish(self, group: str, start: int, finished: int, state_epoch: int = -1) -> None:
        """As the leader of partition one-0 says how far the group has come."""
        of = write_share_group_state
        batch = of.StateBatch(
            first_offset=start, last_offset=start + finished - 1, delivery_state=2,
            delivery_count=1,
        )  # fmt: skip
        change = of.WriteShareGroupStatePartition(
            partition=0, state_epoch=state_epoch, leader_epoch=0, start_offset=start,
            delivery_complete_count=finished, state_batches=[batch],
        )  # fmt: skip
        topic = of.WriteShareGroupStateTopic(topic_id=self.ids["one"], partitions=[change])
        told = self.wire.call(of.WriteShareGroupStateRequest(group_id=group, topics=[topic]), 1)
        self.said.append(("finished", group, told.results[0].partitions[0].error_code))

    def summary(self, group: str) -> None:
        """State epoch, start offset and finished offsets of one-0."""
        of = read_share_group_state_summary
        asked = of.ReadShareGroupStateSummaryPartition(partition=0, leader_epoch=0)
        topic = of.ReadShareGroupStateSummaryTopic(topic_id=self.ids["one"], partitions=[asked])
        told = self.wire.call(
            of.ReadShareGroupStateSummaryRequest(group_id=group, topics=[topic]), 1
        )
        each = told.results[0].partitions[0]
        found = each.error_code, each.state_epoch, each.start_offset, each.delivery_complete_count
        self.said.append(("summary", group, found))


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[OffsetsSide]]:
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("brokers")
        ours = stack.enter_context(start_broker(folder / "ours", COMMON))
        kafka = stack.enter_context(start_kafka(folder / "kafka", KAFKA))
        both = [OffsetsSide(each.bootstrap) for each in (kafka, ours)]
        for each in both:
            stack.callback(each.wire.close)
        yield both


def nobody(side: OffsetsSide) -> None:
    """Groups that are not there."""
    side.describe("none", None)
    side.describe("none", {"one": [0]})
    side.describe("none", {})
    side.describe("none", {"missing": [0], "one": [0]})
    side.delete("none", "one")
    side.delete("none")
    side.delete("", "one")
    side.alter("", {"one": {0: 1}})


def made_by_offsets(side: OffsetsSide) -> None:
    """A group that begins with offsets that are set."""
    side.alter("set", {"one": {0: 4}})
    side.group("set")
    side.summary("set")
    side.describe("set", None)
    side.describe("set", {"one": [0], "two": [0, 1]})
    side.alter("set", {"one": {0: 2}, "two": {0: 0, 1: 0, 2: 0}, "missing": {0: 1}})
    side.summary("set")
    side.describe("set", None)
    side.describe("set", {"missing": [0], "one": [0]})
    side.alter("set", {"one": {0: -1}})
    side.alter("set", {"one": {0: 99}})
    side.describe("set", None)
    side.delete("set", "two", "missing")
    side.describe("set", None)
    side.describe("set", {"two": [0]})
    side.delete("set", "two")
    side.delete("set")
    side.remove("set")
    side.describe("set", None)
    side.summary("set")


def with_members(side: OffsetsSide) -> None:
    """Nobody sets the offsets of a group at work."""
    epoch = side.beat("busy", "m", 0, "one")
    until(lambda: side._describe("busy", None)[1] != [])
    side.describe("busy", None)
    side.finish("busy", 3, 2)
    side.describe("busy", None)
    side.describe("busy", {"one": [0]})
    side.alter("busy", {"one": {0: 1}})
    side.delete("busy", "one")
    side.remove("busy")
    side.beat("busy", "m", -1)
    side.alter("busy", {"one": {0: 1}})
    side.describe("busy", None)
    side.delete("busy", "one")
    side.describe("busy", None)
    side.remove("busy")
    assert epoch > 0


@pytest.mark.parametrize("course", [nobody, made_by_offsets, with_members])
def test_offsets_of_share_groups_are_as_with_kafka(sides: list[OffsetsSide], course: Any) -> None:
    for side in sides:
        side.said.clear()
        course(side)
    kafka, ours = (side.said for side in sides)
    different = [(a, b) for a, b in zip(kafka, ours, strict=True) if a != b]
    assert different == []


def test_what_kafka_does_not_answer_well_is_answered(sides: list[OffsetsSide]) -> None:
    """A partition that is not there hangs a Kafka; an empty name or list is its unknown error."""
    _, ours = sides
    assert ours._describe("none", {"one": [7]}) == (0, [("one", "one", 7, -1, -1, 3)])
    assert ours._describe("", {"one": [0]}) == (24, [])
    assert ours._describe("none", {"two": []}) == (0, [])
