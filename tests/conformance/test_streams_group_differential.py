"""Streams groups, spoken word by word to a real Kafka 4.3 and to us.

Both hear the same heartbeats, commits and questions and have to give the same answers: codes,
texts, epochs, statuses, tasks; and have to write the same records. Not asked, since we differ on
purpose: topologies that contradict themselves (two subtopologies of one id, numbers without a
topic, negative numbers: 130 here, -1 there), members with an address while source topics are
missing (answered here, -1 there), a group that is described twice (once here).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from broker.groups.records.assigned import framed_value
from broker.groups.records.classic import read_row
from broker.groups.records.streams import StreamsRow
from protocol.apis import (
    delete_groups,
    describe_configs,
    describe_groups,
    find_coordinator,
    incremental_alter_configs,
    join_group,
    list_groups,
    metadata,
    offset_commit,
    offset_fetch,
    streams_group_describe,
    streams_group_heartbeat,
)
from protocol.apis.streams_group_heartbeat import (
    StreamsCopartitionGroup,
    StreamsEndpoint,
    StreamsKeyValue,
    StreamsSubtopology,
    StreamsTaskIds,
    StreamsTaskOffset,
    StreamsTopicInfo,
    StreamsTopology,
)
from tests.conformance.conftest import create_topic
from tests.support.clients.wire import WireClient
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.patience import until
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.handler_world import altered

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
COMMON = {
    "offsets.topic.num.partitions": "1",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.max.size": "5",
}
KAFKA = COMMON | {"offsets.topic.replication.factor": "1"}
JOIN, LEAVE, LEAVE_STATIC = 0, -1, -2
MISSING_INTERNAL = 3
GROUP_RESOURCE, SET = 32, 0
SOURCES = {"four": 4, "two": 2, "pair-a": 3, "pair-b": 3, "odd": 5}


def changelog(name: str, **fields: Any) -> StreamsTopicInfo:
    configs = [StreamsKeyValue(key="cleanup.policy", value="compact")]
    return StreamsTopicInfo(name=name, topic_configs=configs, **fields)


def part(name: str, *sources: str, **fields: Any) -> StreamsSubtopology:
    return StreamsSubtopology(subtopology_id=name, source_topics=list(sources), **fields)


def application(*parts: StreamsSubtopology, epoch: int = 0) -> StreamsTopology:
    return StreamsTopology(epoch=epoch, subtopologies=list(parts))


def stateful(group: str, source: str = "four") -> StreamsTopology:
    """Words are split by one part and counted by another one, with a state."""
    between = StreamsTopicInfo(name=f"{group}-repartition")
    return application(
        part("0", source, repartition_sink_topics=[between.name]),
        part(
            "1",
            repartition_source_topics=[between],
            state_changelog_topics=[changelog(f"{group}-changelog")],
        ),
    )


class Side:
    """One broker, and all that it said."""

    def __init__(self, bootstrap: str, *, is_new: bool = True) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self.bootstrap = bootstrap
        self.wire = WireClient(host, int(port))
        self.said: list[object] = []
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, tuple[list[StreamsTaskIds], ...]] = {}
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        for name, partitions in SOURCES.items() if is_new else ():
            create_topic(self.admin, name, partitions)
        asked = find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        until(lambda: self.wire.call(asked, 4).coordinators[0].error_code == 0)
        until(lambda: self.wire.call(list_groups.ListGroupsRequest(), 5).error_code == 0)
        until(lambda: self._commit("ready", "", -1, "four") == 0)

    # --- heartbeats ---

    def beat(self, group: str, member: str, epoch: int | None = None, **said: Any) -> Any:
        """One heartbeat; who joins says everything; by default with the epoch of the last one."""
        answer = self._beat(group, member, epoch, **said)
        self._note(member, answer)
        return answer

    def _beat(self, group: str, member: str, epoch: int | None, **said: Any) -> Any:
        key = f"{group}/{member}"
        epoch = self.epochs.get(key, JOIN) if epoch is None else epoch
        if epoch == JOIN:
            tasks: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
            said = {"rebalance_timeout_ms": 60_000, "process_id": member, **tasks, **said}
        if said.pop("owns", False):
            active, standby, warmup = self.owned[key]
            said |= {"active_tasks": active, "standby_tasks": standby, "warmup_tasks": warmup}
        request = streams_group_heartbeat.StreamsGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, **said
        )
        answer = self.wire.call(request, 0)
        if answer.error_code == 0:
            self.epochs[key] = answer.member_epoch
        if answer.active_tasks is not None:
            self.owned[key] = (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks)
        return answer

    def _note(self, member: str, answer: Any) -> None:
        self.said.append(
            (
                member, answer.error_code, answer.error_message, answer.member_id,
                answer.member_epoch, answer.heartbeat_interval_ms,
                answer.acceptable_recovery_lag, answer.task_offset_interval_ms,
                None if answer.status is None else
                [(each.status_code, _words(each.status_detail)) for each in answer.status],
                _tasks(answer.active_tasks), _tasks(answer.standby_tasks),
                _tasks(answer.warmup_tasks), answer.endpoint_information_epoch,
                _endpoints(answer.partitions_by_user_endpoint),
            )
        )  # fmt: skip

    def made(self, group: str, member: str, **said: Any) -> None:
        """Heartbeats until the internal topics are there; the last answer is noted."""

        answers: list[Any] = []

        def there() -> bool:
            answers.append(self._beat(group, member, None, **said))
            assert answers[-1].error_code == 0, answers[-1]
            return all(each.status_code != MISSING_INTERNAL for each in answers[-1].status)

        until(there)
        self._note(member, answers[-1])

    # --- questions ---

    def describe(self, *groups: str) -> None:
        request = streams_group_describe.StreamsGroupDescribeRequest(
            group_ids=list(groups), include_authorized_operations=True
        )
        groups = self.wire.call(request, 0).groups
        for found in sorted(groups, key=lambda each: each.group_id):
            topology = found.topology
            self.said.append(
                (
                    found.error_code, found.group_id and found.error_message, found.group_id,
                    found.group_state,
                    found.group_epoch, found.assignment_epoch, found.authorized_operations,
                    topology and (topology.epoch, topology.subtopologies),
                    sorted(repr(_settled(each)) for each in found.members),
                )
            )  # fmt: skip

    def state(self, group: str) -> str | None:
        """The group's state, which is not noted."""
        asked = streams_group_describe.StreamsGroupDescribeRequest(group_ids=[group])
        found: str | None = self.wire.call(asked, 0).groups[0].group_state
        return found

    def listed(self, group: str, **filters: Any) -> None:
        found = self.wire.call(list_groups.ListGroupsRequest(**filters), 5).groups
        for each in found:
            if each.group_id == group:
                self.said.append((each.group_type, each.protocol_type, each.group_state))

    def described_as_classic(self, group: str) -> None:
        request = describe_groups.DescribeGroupsRequest(groups=[group])
        found = self.wire.call(request, 6).groups[0]
        self.said.append((found.error_code, found.group_state))

    def delete(self, group: str) -> None:
        request = delete_groups.DeleteGroupsRequest(groups_names=[group])
        self.said.append(("delete", self.wire.call(request, 2).results[0].error_code))

    def join_as_classic(self, group: str) -> None:
        protocol = join_group.JoinGroupRequestProtocol(name="range", metadata=b"")
        request = join_group.JoinGroupRequest(
            group_id=group, session_timeout_ms=10_000, rebalance_timeout_ms=10_000,
            protocol_type="consumer", protocols=[protocol],
        )  # fmt: skip
        answer = self.wire.call(request, 9)
        self.said.append(("join", answer.error_code))

    def commit(self, *asked: Any, **how: Any) -> None:
        self.said.append(("commit", self._commit(*asked, **how)))

    def _commit(
        self, group: str, member: str, epoch: int, topic: str, *, index: int = 0, version: int = 9
    ) -> int:
        place = offset_commit.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=7
        )
        named = offset_commit.OffsetCommitRequestTopic(name=topic, partitions=[place])
        request = offset_commit.OffsetCommitRequest(
            group_id=group, member_id=member, generation_id_or_member_epoch=epoch, topics=[named]
        )
        code: int = self.wire.call(request, version).topics[0].partitions[0].error_code
        return code

    def fetch(self, group: str, member: str | None, epoch: int) -> None:
        asked = offset_fetch.OffsetFetchRequestGroup(
            group_id=group, member_id=member, member_epoch=epoch, topics=None
        )
        found = self.wire.call(offset_fetch.OffsetFetchRequest(groups=[asked]), 9).groups[0]
        self.said.append(("fetch", found.error_code, len(found.topics)))

    def partitions(self, *names: str) -> None:
        """The partitions that internal topics got."""
        topics = self.wire.call(metadata.MetadataRequest(topics=None), 12).topics
        counts = {each.name: len(each.partitions) for each in topics}
        self.said.append([counts.get(name) for name in names])

    def set(self, group: str, **settings: str) -> None:
        named = [(key.replace("_", "."), SET, value) for key, value in settings.items()]
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[altered(GROUP_RESOURCE, group, named)]
        )
        found = self.wire.call(request, 1).responses[0]
        self.said.append(("set", found.error_code))
        if not found.error_code:
            wanted = {key: value for key, _, value in named}
            until(
                lambda: wanted.items() <= self._settings(group).items(), "a setting does not count"
            )

    def _settings(self, group: str) -> dict[str, str | None]:
        asked = describe_configs.DescribeConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=group, configuration_keys=None
        )
        request = describe_configs.DescribeConfigsRequest(resources=[asked])
        [found] = self.wire.call(request, 1).results
        return {each.name: each.value for each in found.configs}

    def records(self, group: str) -> None:
        """The records of a group, but for its hash and times."""
        for key, value in self._raw():
            row = read_row(key, value)
            if not isinstance(row, StreamsRow) or row.group != group:
                continue
            if value is not None:
                assert framed_value(row.value) == value, (row, value)
            for field in ("metadata_hash", "timestamp"):
                if hasattr(row.value, field):
                    setattr(row.value, field, 0)
            self.said.append((row.kind.name, row.member, row.value))

    def _raw(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "judge",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition("__consumer_offsets", 0, OFFSET_BEGINNING)])
        try:
            while True:
                message = consumer.poll(20)
                assert message is not None, "no end within 20 s"
                if message.error():
                    return
                yield message.key(), message.value()
        finally:
            consumer.close()


def _words(text: str) -> list[str]:
    """The words of a text, since Kafka names topics in no order."""
    return sorted(text.replace(",", "").replace(".", "").split())


def _tasks(tasks: Any) -> object:
    return (
        None if tasks is None else sorted((each.subtopology_id, each.partitions) for each in tasks)
    )


def _endpoints(found: Any) -> object:
    if found is None:
        return None
    return sorted(
        (
            each.user_endpoint.host,
            each.user_endpoint.port,
            sorted((part.topic, sorted(part.partitions)) for part in each.active_partitions),
            sorted((part.topic, sorted(part.partitions)) for part in each.standby_partitions),
        )
        for each in found
    )


def _settled(member: Any) -> Any:
    member.client_tags = sorted(member.client_tags, key=lambda each: each.key)
    return member


# --- scenes ---


def first_member(side: Side) -> None:
    group = "first"
    side.beat(group, "a", topology=stateful(group))
    side.describe(group)
    side.made(group, "a")
    side.partitions(f"{group}-repartition", f"{group}-changelog")
    side.describe(group)
    side.listed(group)
    side.listed(group, types_filter=["streams"], states_filter=["stable"])
    side.described_as_classic(group)
    side.beat(group, "a")
    side.beat(group, "a", owns=True)
    side.beat(group, "a", rack_id="r", client_tags=[StreamsKeyValue(key="zone", value="z")])
    side.beat(group, "a", owns=True)
    side.describe(group)
    side.beat(group, "a", LEAVE)
    side.describe(group)
    side.listed(group)
    side.records(group)


def refused(side: Side) -> None:
    group, plain = "refused", application(part("0", "four"))
    tasks = [StreamsTaskIds(subtopology_id="0", partitions=[0])]
    offset = StreamsTaskOffset(subtopology_id="0")
    side.beat(group, "a", 3)
    side.beat(group, "a", LEAVE)
    side.beat(group, "a", LEAVE_STATIC)
    side.beat(group, "a", LEAVE_STATIC, instance_id="i")
    side.beat(group, "a", -3)
    side.beat(group, "", topology=plain)
    side.beat("", "a", topology=plain)
    side.beat(group, "a", topology=plain, rack_id=" ")
    side.beat(group, "a", topology=plain, instance_id="i")
    side.beat(group, "a", topology=plain, task_offsets=[offset])
    side.beat(group, "a", topology=plain, task_end_offsets=[offset])
    side.beat(group, "a", topology=plain, rebalance_timeout_ms=-1)
    side.beat(group, "a", topology=plain, active_tasks=tasks)
    side.beat(group, "a", topology=plain, standby_tasks=None)
    side.beat(group, "a", topology=plain, warmup_tasks=tasks)
    side.beat(group, "a")
    side.beat(group, "a", topology=application(part("0", "four", source_topic_regex=["f.*"])))
    fixed = changelog("c", partitions=3)
    side.beat(group, "a", topology=application(part("0", "four", state_changelog_topics=[fixed])))
    side.beat(group, "a", topology=application(part("0", "__consumer_offsets")))
    side.beat(group, "a", topology=application(part("0", "a/b", "fine")))
    side.beat(group, "a", topology=application(part("0", "four", repartition_sink_topics=["!"])))
    side.describe(group, "")
    side.beat(group, "a", topology=plain)
    side.beat(group, "a", topology=application(part("0", "two")))
    side.beat(group, "a", 1, topology=plain)
    side.beat(group, "a", active_tasks=tasks)
    side.beat(group, "a", 9)
    side.beat(group, "b", 2)
    nine = [StreamsTaskIds(subtopology_id="0", partitions=[9])]
    side.beat(group, "a", active_tasks=nine, standby_tasks=[], warmup_tasks=[])
    other = [StreamsTaskIds(subtopology_id="7", partitions=[0])]
    side.beat(group, "a", active_tasks=[], standby_tasks=other, warmup_tasks=[])
    side.beat(group, "a", 1)
    side.beat(group, "a", 1, owns=True)
    side.beat(group, "a", JOIN, topology=application(part("0", "four"), epoch=1))
    side.beat("ready", "a", 2)


def topics_that_miss(side: Side) -> None:
    group = "missing"
    side.beat(group, "a", topology=application(part("0", "later", "four", "other")))
    side.describe(group)
    side.beat(group, "a", owns=True)
    made = side.admin.create_topics([NewTopic("later", 2, 1), NewTopic("other", 6, 1)])
    assert [each.result(30) for each in made.values()] == [None, None]

    def found() -> bool:
        answer = side._beat(group, "a", None)
        return not answer.status

    until(found)
    side.beat(group, "a", JOIN, topology=application(part("0", "later", "four", "other")))
    done = side.admin.create_partitions([NewPartitions("later", 8)])
    done["later"].result(30)

    def grown() -> bool:
        side._beat(group, "a", None, owns=True)
        return sum(len(each.partitions) for each in side.owned[f"{group}/a"][0]) == 8

    until(grown)
    side.describe(group)


def copartitioned(side: Side) -> None:
    both = StreamsCopartitionGroup(source_topics=[0, 1])
    mixed = StreamsCopartitionGroup(source_topics=[0], repartition_source_topics=[0])
    flexible, fixed = StreamsTopicInfo(name="co-flexible"), StreamsTopicInfo(name="co-fixed")
    fixed.partitions = 4
    for number, each in enumerate(
        [
            part("0", "pair-a", "pair-b", copartition_groups=[both]),
            part("0", "pair-a", "odd", copartition_groups=[both]),
            part(
                "0", "odd", repartition_sink_topics=["co-fixed"],
                repartition_source_topics=[fixed], copartition_groups=[mixed],
            ),
            part(
                "0", "odd", repartition_sink_topics=["co-flexible"],
                repartition_source_topics=[flexible], copartition_groups=[mixed],
            ),
            part("0", repartition_source_topics=[flexible]),
            part("0", "odd", repartition_source_topics=[StreamsTopicInfo(name="unfed")]),
            part("0"),
        ]
    ):  # fmt: skip
        group = f"co-{number}"
        side.beat(group, "a", topology=application(each))
        side.describe(group)
    side.made("co-3", "a")
    side.partitions("co-flexible")
    existing = StreamsTopicInfo(name="two")
    misfit = part("0", "odd", repartition_sink_topics=["two"], repartition_source_topics=[existing])
    side.beat("co-misfit", "a", topology=application(misfit))
    side.describe("co-misfit")


def several_members(side: Side) -> None:
    group, plain = "several", application(part("0", "four"), part("1", "two"))
    side.beat(group, "a", topology=plain)
    side.beat(group, "a", owns=True)
    side.beat(group, "b", topology=plain)
    side.describe(group)
    side.beat(group, "a")
    side.beat(group, "b")
    side.beat(group, "a", owns=True)
    side.beat(group, "b", owns=True)
    side.beat(group, "a", owns=True)
    side.beat(group, "b", owns=True)
    side.describe(group)
    side.beat(group, "b", LEAVE)
    side.beat(group, "a")
    side.beat(group, "a", owns=True)
    side.describe(group)
    side.beat(group, "c", topology=plain, process_id="a")
    side.beat(group, "a")
    side.beat(group, "a", owns=True)
    side.beat(group, "c", owns=True)
    side.describe(group)
    side.records(group)


def standbys(side: Side) -> None:
    group = "standbys"
    side.set(group, streams_num_standby_replicas="1")
    side.set(group, streams_num_standby_replicas="3")
    topology = application(
        part("0", "four", state_changelog_topics=[changelog("standbys-changelog")])
    )
    side.beat(group, "a", topology=topology)
    side.made(group, "a")
    side.beat(group, "a", owns=True)
    side.beat(group, "b", topology=topology)
    for _ in range(3):
        side.beat(group, "a", owns=True)
        side.beat(group, "b", owns=True)
    side.describe(group)
    side.beat(group, "a", LEAVE)
    side.beat(group, "b", owns=True)
    side.beat(group, "b", owns=True)
    side.describe(group)
    side.beat(group, "c", topology=topology)
    for _ in range(3):
        side.beat(group, "b", owns=True)
        side.beat(group, "c", owns=True)
    side.set(group, streams_num_standby_replicas="0")

    def heard() -> bool:
        side._beat(group, "b", None, owns=True)
        side._beat(group, "c", None, owns=True)
        has_standbys = any(side.owned[f"{group}/{name}"][1] for name in "bc")
        return not has_standbys and side.state(group) == "Stable"

    until(heard)
    side.describe(group)
    side.records(group)


def endpoints(side: Side) -> None:
    group, plain = "endpoints", application(part("0", "four", "two"))
    side.beat(group, "a", topology=plain, user_endpoint=StreamsEndpoint(host="h", port=65_000))
    side.beat(group, "a", owns=True)
    side.beat(group, "a", owns=True, endpoint_information_epoch=1)
    side.beat(group, "b", topology=plain)
    side.beat(group, "a", owns=True, endpoint_information_epoch=1)
    side.beat(group, "a", endpoint_information_epoch=1)
    side.beat(group, "b", user_endpoint=StreamsEndpoint(host="i", port=1))
    side.beat(group, "a", owns=True, endpoint_information_epoch=1)
    side.beat(group, "b", owns=True)
    side.describe(group)


def shut_down(side: Side) -> None:
    group, plain = "down", application(part("0", "four"))
    side.beat(group, "a", topology=plain, shutdown_application=True)
    side.beat(group, "a")
    side.beat(group, "b", topology=plain)
    side.beat(group, "b", shutdown_application=True)
    side.beat(group, "a")
    side.beat(group, "b", LEAVE)
    side.beat(group, "a", owns=True)
    side.beat(group, "a", LEAVE, shutdown_application=True)
    side.beat(group, "c", topology=plain)


def delayed(side: Side) -> None:
    group, plain = "delayed", application(part("0", "four"))
    side.set(group, streams_initial_rebalance_delay_ms="1500")
    side.beat(group, "a", topology=plain)
    side.beat(group, "b", topology=plain)
    side.beat(group, "a")
    side.describe(group)
    time.sleep(2.5)
    side.beat(group, "a")
    side.beat(group, "b")
    side.describe(group)
    side.records(group)
    spaced = "spaced"
    side.set(spaced, streams_assignment_interval_ms="15000")
    side.beat(spaced, "a", topology=plain)
    side.beat(spaced, "b", topology=plain)
    side.beat(spaced, "a", owns=True)
    side.describe(spaced)


def offsets(side: Side) -> None:
    group, plain = "offsets", application(part("0", "four"))
    side.beat(group, "a", topology=plain)
    side.beat(group, "a", owns=True)
    side.commit(group, "a", side.epochs["offsets/a"], "four")
    side.commit(group, "a", side.epochs["offsets/a"], "four", version=8)
    side.commit(group, "a", 99, "four")
    side.commit(group, "x", 1, "four")
    side.commit(group, "", -1, "four")
    side.beat(group, "a", rack_id="r")
    side.commit(group, "a", side.epochs["offsets/a"] - 1, "four")
    side.commit(group, "a", side.epochs["offsets/a"] - 1, "two")
    side.commit(group, "a", 1, "four")
    side.fetch(group, "a", side.epochs["offsets/a"])
    side.fetch(group, "a", 1)
    side.fetch(group, "x", 1)
    side.fetch(group, None, -1)
    side.delete(group)
    side.beat(group, "a", LEAVE)
    side.commit(group, "", -1, "four")
    side.delete(group)
    side.listed(group)
    side.describe(group)
    side.records(group)


def other_kinds(side: Side) -> None:
    plain = application(part("0", "four"))
    side.commit("simple", "", -1, "four")
    side.beat("simple", "a", topology=plain)
    side.fetch("simple", None, -1)
    side.join_as_classic("simple")
    side.beat("simple", "a", LEAVE)
    side.join_as_classic("simple")
    side.beat("simple", "a", JOIN, topology=plain)
    side.describe("simple")
    for name in "abcdef":
        side.beat("full", name, topology=plain)
    side.beat("full", "a", JOIN, topology=plain)


SCENES: list[Callable[[Side], None]] = [
    first_member, refused, topics_that_miss, copartitioned, several_members, standbys, endpoints,
    shut_down, delayed, offsets, other_kinds,
]  # fmt: skip


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    root = tmp_path_factory.mktemp("streams-both")
    with ExitStack() as stack:
        kafka = stack.enter_context(start_kafka(root / "kafka", KAFKA))
        ours = stack.enter_context(start_broker(root / "ours", COMMON))
        sides = Side(kafka.bootstrap), Side(ours.bootstrap)
        for side in sides:
            stack.callback(side.wire.close)
        yield sides


@pytest.mark.parametrize("scene", SCENES, ids=lambda each: each.__name__)
def test_both_answer_the_same(scene: Callable[[Side], None], both: tuple[Side, Side]) -> None:
    for side in both:
        side.said.clear()
        scene(side)
    kafka, ours = both
    different = [
        (number, of_kafka, of_us)
        for number, (of_kafka, of_us) in enumerate(zip(kafka.said, ours.said, strict=False))
        if of_kafka != of_us
    ]
    assert different == []
    assert len(kafka.said) == len(ours.said)
