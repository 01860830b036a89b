"""ShareGroupHeartbeat and ShareGroupDescribe, spoken word by word to a real Kafka 4.3 and to us.

Both hear the same heartbeats and questions and have to give the same answers: codes, texts where a
Kafka has one, partitions, and descriptions of groups at rest. Epochs are not compared: how often a
Kafka raises them depends on when it has made the states of partitions. Not asked, since we differ
on purpose: a group that is described twice (once here).
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from protocol.apis import (
    consumer_group_heartbeat,
    delete_groups,
    find_coordinator,
    list_groups,
    metadata,
    share_group_describe,
    share_group_heartbeat,
)
from tests.conformance.conftest import create_topic
from tests.support.clients.wire import WireClient
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.patience import until
from tests.support.worlds.broker_process import start_broker

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
COMMON = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "group.share.max.size": "3",
}
KAFKA = COMMON | {
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
TOPICS = {"one": 4, "two": 2}
JOIN, LEAVE = 0, -1


class Side:
    """One broker, and all that it said."""

    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self.wire = WireClient(host, int(port))
        self.said: list[object] = []
        self.epochs: dict[str, int] = {}
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for name, partitions in TOPICS.items():
            create_topic(admin, name, partitions)
        asked = find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        until(lambda: self.wire.call(asked, 4).coordinators[0].error_code == 0)
        until(lambda: self.wire.call(list_groups.ListGroupsRequest(), 5).error_code == 0)
        topics = self.wire.call(metadata.MetadataRequest(topics=None), 12).topics
        self.names = {each.topic_id: each.name for each in topics}

    def _beat(self, group: str, member: str, epoch: int | None, said: dict[str, Any]) -> Any:
        request = share_group_heartbeat.ShareGroupHeartbeatRequest(
            group_id=group, member_id=member,
            member_epoch=self.epochs.get(member, JOIN) if epoch is None else epoch, **said,
        )  # fmt: skip
        answer = self.wire.call(request, 1)
        if answer.error_code == 0:
            self.epochs[member] = answer.member_epoch
        return answer

    def beat(self, group: str, member: str, epoch: int | None = None, **said: Any) -> None:
        """One heartbeat, by default with the epoch of the last one."""
        answer = self._beat(group, member, epoch, said)
        self.said.append(
            ("beat", group, member, epoch, answer.error_code, answer.member_id,
             answer.heartbeat_interval_ms, answer.error_message)
        )  # fmt: skip

    def settle(self, group: str, wanted: dict[str, dict[str, int]]) -> None:
        """Members beat until the group is at rest, each with so many partitions of the topics."""

        def is_at_rest() -> bool:
            for member in wanted:
                self._beat(group, member, None, {})
            found = self._described(group)
            has = {each.member_id: self._counts(each) for each in found.members}
            epochs = {each.member_epoch for each in found.members}
            return has == wanted and epochs == {found.group_epoch} == {found.assignment_epoch}

        until(is_at_rest, lambda: str(self._described(group)))
        self.describe(group)

    def _counts(self, member: Any) -> dict[str, int]:
        parts = member.assignment.topic_partitions
        return {each.topic_name: len(each.partitions) for each in parts}

    def _described(self, *groups: str) -> Any:
        request = share_group_describe.ShareGroupDescribeRequest(group_ids=list(groups))
        return self.wire.call(request, 1).groups[0]

    def describe(self, *groups: str, operations: bool = False) -> None:
        """All that is said of groups, but for hosts; epochs are compared as they are."""
        request = share_group_describe.ShareGroupDescribeRequest(
            group_ids=list(groups), include_authorized_operations=operations
        )
        for each in sorted(self.wire.call(request, 1).groups, key=lambda one: one.group_id):
            members = sorted(
                (
                    one.member_id, one.rack_id, one.client_id, one.subscribed_topic_names,
                    sorted(
                        (part.topic_name, sorted(part.partitions), self.names[part.topic_id])
                        for part in one.assignment.topic_partitions
                    ),
                )
                for one in each.members
            )  # fmt: skip
            self.said.append(
                ("group", each.group_id, each.error_code, each.group_state, each.assignor_name,
                 each.authorized_operations, members, each.error_message)
            )  # fmt: skip

    def consumer(self, group: str, member: str, epoch: int) -> None:
        """A heartbeat of a consumer group's member."""
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, rebalance_timeout_ms=5000,
            subscribed_topic_names=["one"], topic_partitions=[],
        )  # fmt: skip
        answer = self.wire.call(request, 1)
        self.said.append(("consumer", answer.error_code, answer.error_message))

    def delete(self, group: str) -> None:
        request = delete_groups.DeleteGroupsRequest(groups_names=[group])
        self.said.append(("delete", group, self.wire.call(request, 2).results[0].error_code))


def refusals(side: Side) -> None:
    side.beat("", "a", JOIN, subscribed_topic_names=["one"])
    side.beat("r", "", JOIN, subscribed_topic_names=["one"])
    side.beat("r", "m" * 37, JOIN, subscribed_topic_names=["one"])
    side.beat("r", "a", JOIN)
    side.beat("r", "a", JOIN, subscribed_topic_names=[])
    side.beat("r", "a", JOIN, subscribed_topic_names=["one"], rack_id="")
    side.beat("r", "a", -2, subscribed_topic_names=["one"])
    side.beat("nowhere", "a", 5)
    side.beat("nowhere", "a", LEAVE)
    side.describe("nowhere", "")
    side.beat("r", "a", JOIN, subscribed_topic_names=["one"])
    side.settle("r", {"a": {"one": 4}})
    side.beat("r", "b", 3)
    side.beat("r", "b", LEAVE)
    side.beat("r", "a", 99)
    side.beat("r", "a", -7)
    side.beat("r", "a", subscribed_topic_names=["one"], rack_id="")


def members(side: Side) -> None:
    side.beat("m", "a", JOIN, subscribed_topic_names=["one"], rack_id="here")
    side.settle("m", {"a": {"one": 4}})
    side.beat("m", "b", JOIN, subscribed_topic_names=["one", "two"])
    side.beat("m", "c", JOIN, subscribed_topic_names=["nothing"])
    side.beat("m", "d", JOIN, subscribed_topic_names=["one"])
    side.beat("m", "c", LEAVE)
    side.beat("m", "c", LEAVE)
    side.delete("m")
    side.beat("m", "b", LEAVE)
    side.settle("m", {"a": {"one": 4}})
    side.beat("m", "a", subscribed_topic_names=["two"], rack_id="there")
    side.settle("m", {"a": {"two": 2}})
    side.beat("m", "a", JOIN, subscribed_topic_names=["one", "two"])
    side.settle("m", {"a": {"one": 4, "two": 2}})
    side.describe("m", "nowhere", operations=True)
    side.beat("m", "a", LEAVE)
    side.describe("m")
    side.beat("m", "a", 3)
    side.delete("m")
    side.describe("m")


def kinds(side: Side) -> None:
    side.beat("share", "a", JOIN, subscribed_topic_names=["one"])
    side.settle("share", {"a": {"one": 4}})
    side.consumer("share", "x", JOIN)
    side.consumer("consumer", "x", JOIN)
    side.beat("consumer", "a", JOIN, subscribed_topic_names=["one"])
    side.beat("consumer", "a", 1)
    side.beat("consumer", "a", LEAVE)
    side.describe("consumer", "share")


SCENES: list[Callable[[Side], None]] = [refusals, members, kinds]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    root = tmp_path_factory.mktemp("share-groups-both")
    with ExitStack() as stack:
        kafka = stack.enter_context(start_kafka(root / "kafka", KAFKA))
        ours = stack.enter_context(start_broker(root / "ours", COMMON))
        sides = Side(kafka.bootstrap), Side(ours.bootstrap)
        for side in sides:
            stack.callback(side.wire.close)
        yield sides


EPOCHS = re.compile(r"known by the group coordinator \(\d+\)")


def as_spoken(of_us: Any, of_kafka: Any) -> Any:
    """What we said, without a text where a Kafka has none, and with its number in one that ends
    with the group's epoch.
    """
    if of_us[0] not in {"beat", "group"} or of_us[-1] is None:
        return of_us
    if of_kafka[-1] is None:
        return (*of_us[:-1], None)
    known = EPOCHS.search(of_kafka[-1])
    return (*of_us[:-1], EPOCHS.sub(known[0], of_us[-1])) if known else of_us


@pytest.mark.parametrize("scene", SCENES, ids=lambda each: each.__name__)
def test_both_answer_the_same(scene: Callable[[Side], None], both: tuple[Side, Side]) -> None:
    for side in both:
        side.said.clear()
        scene(side)
    kafka, ours = (side.said for side in both)
    different = [
        f"{number}: {of_kafka}\n   ours: {of_us}"
        for number, (of_kafka, of_us) in enumerate(zip(kafka, ours, strict=True))
        if of_kafka != as_spoken(of_us, of_kafka)
    ]
    assert not different, "\n".join(different)
