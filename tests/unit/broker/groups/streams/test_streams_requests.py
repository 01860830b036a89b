"""Requests of streams groups: internal topics, restarts, time, commits, other kinds of groups."""

import asyncio
import random
from typing import Any

import pytest

from broker.groups.classic.members import MemberClaim
from broker.groups.records.assigned import framed_value
from broker.groups.records.streams import StreamsGroupValue, StreamsKind, streams_key
from broker.groups.streams.group import StreamsGroup
from protocol.apis import (
    consumer_group_heartbeat,
    delete_groups,
    list_groups,
    offset_fetch,
    streams_group_describe,
    streams_group_heartbeat,
)
from protocol.apis.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.apis.streams_group_heartbeat import (
    StreamsSubtopology,
    StreamsTaskIds,
    StreamsTopicInfo,
    StreamsTopology,
)
from protocol.errors import ErrorCode as E
from protocol.errors import KafkaError
from tests.support.worlds.group_world import GROUP, GroupWorld, Promise, group_world
from tests.support.worlds.handler_world import altered
from tests.support.worlds.refused_writes import RefusedWrites

SESSION_MS, REBALANCE_MS, DELAY_MS = 45_000, 60_000, 3000
GROUP_RESOURCE, SET = 32, 0


async def settled(promise: Promise) -> Any:
    for _ in range(20):
        await asyncio.sleep(0)
    assert promise.error is None, promise.error
    assert promise.answer is not None, "it waits"
    return promise.answer


def plain(*sources: str, epoch: int = 0) -> StreamsTopology:
    part = StreamsSubtopology(subtopology_id="0", source_topics=list(sources or ("t",)))
    return StreamsTopology(epoch=epoch, subtopologies=[part])


def stateful(name: str = "log", **fields: Any) -> StreamsTopology:
    topology = plain()
    topology.subtopologies[0].state_changelog_topics = [StreamsTopicInfo(name=name, **fields)]
    return topology


class Thread:
    """A member: what it was given, and its epoch."""

    def __init__(self, world: GroupWorld, name: str, group: str = GROUP) -> None:
        self.world, self.name, self.group = world, name, group
        self.epoch = 0
        self.tasks: tuple[list[StreamsTaskIds], ...] = ([], [], [])

    async def join(self, topology: StreamsTopology | None = None, **said: Any) -> Any:
        said = {"process_id": self.name, "rebalance_timeout_ms": REBALANCE_MS, **said}
        self.epoch, self.tasks = 0, ([], [], [])
        return await self.beat(topology=topology or plain(), **said)

    async def beat(self, *, owns: bool = True, **said: Any) -> Any:
        active, standby, warmup = self.tasks
        if owns:
            said |= {"active_tasks": active, "standby_tasks": standby, "warmup_tasks": warmup}
        request = streams_group_heartbeat.StreamsGroupHeartbeatRequest(
            group_id=self.group, member_id=self.name, member_epoch=self.epoch, **said
        )
        answer = await settled(Promise(self.world, request, 0))
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.tasks = (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks)
        return answer

    async def leave(self) -> Any:
        self.epoch = -1
        return await self.beat(owns=False)

    @property
    def active(self) -> list[int]:
        return [index for each in self.tasks[0] for index in each.partitions]


def described(world: GroupWorld, group: str = GROUP) -> Any:
    request = streams_group_describe.StreamsGroupDescribeRequest(group_ids=[group])
    return world.now(request, 0).groups[0]


def statuses(answer: Any) -> list[int]:
    return [each.status_code for each in answer.status]


def listed(world: GroupWorld) -> list[tuple[str, str, str]]:
    found = world.now(list_groups.ListGroupsRequest(), 5).groups
    return [(each.group_id, each.group_type, each.group_state) for each in found]


async def configure(world: GroupWorld, **settings: str) -> None:
    named = [(name.replace("_", "."), SET, value) for name, value in settings.items()]
    request = IncrementalAlterConfigsRequest(resources=[altered(GROUP_RESOURCE, GROUP, named)])
    answer = await world.call(request, 1)
    assert answer.responses[0].error_code == 0, answer


async def prompt_world(**settings: Any) -> GroupWorld:
    """Tasks are assigned at once."""
    world = await group_world(**settings)
    await configure(
        world, streams_initial_rebalance_delay_ms="0", streams_assignment_interval_ms="0"
    )
    return world


async def again(world: GroupWorld) -> GroupWorld:
    restarted = world.restarted()
    await restarted.broker.groups.load()
    return restarted


async def test_the_first_member_waits_for_others() -> None:
    world = await group_world()
    a, b = Thread(world, "a"), Thread(world, "b")
    answer = await a.join()
    assert (answer.error_code, statuses(answer), a.active, a.epoch) == (0, [5], [], 1)
    assert statuses(await b.join()) == [5]
    assert described(world).group_state == "Assigning"
    world.pass_ms(DELAY_MS)
    assert statuses(await a.beat()) == statuses(await b.beat()) == []
    assert sorted(a.active + b.active) == [0, 1]
    assert described(world).group_state == "Stable"


async def test_a_group_that_was_left_meanwhile_is_not_assigned() -> None:
    world = await group_world()
    a = Thread(world, "a")
    await a.join()
    await a.leave()
    world.pass_ms(DELAY_MS)
    assert described(world).assignment_epoch == 1


async def test_the_broker_makes_internal_topics_and_says_until_then_that_they_miss() -> None:
    world = await prompt_world()
    a = Thread(world, "a")
    config = streams_group_heartbeat.StreamsKeyValue(key="cleanup.policy", value="compact")
    answer = await a.join(stateful(topic_configs=[config]))
    assert (statuses(answer), a.active) == ([3], [])
    assert answer.status[0].status_detail == "Internal topics are missing: log"
    answer = await a.beat()
    assert (statuses(answer), a.active) == ([], [0, 1])
    topic = world.broker.topics.image.topics["log"]
    assert len(topic.partitions) == 2
    assert world.broker.config.topic_config("log").cleanup_policy == frozenset({"compact"})
    (found,) = described(world).topology.subtopologies[0].state_changelog_topics
    assert (found.name, found.partitions) == ("log", 2)


async def test_an_internal_topic_that_cannot_be_made_is_named_and_tried_again_later() -> None:
    world = await prompt_world()
    a = Thread(world, "a")
    await a.join(stateful(replication_factor=3))
    answer = await a.beat()
    assert statuses(answer) == [3]
    assert "Creation failed: log (Replication factor 3 is not possible" in (
        answer.status[0].status_detail
    )
    world.pass_ms(10_000)
    assert "Creation failed" not in (await a.beat()).status[0].status_detail, "it is tried again"
    assert "Creation failed" in (await a.beat()).status[0].status_detail


async def test_a_broker_that_was_killed_goes_on_where_it_was() -> None:
    world = await prompt_world()
    await configure(world, streams_num_standby_replicas="1")
    a, b = Thread(world, "a"), Thread(world, "b")
    await a.join(stateful(), rack_id="r")
    await a.beat()
    await b.join(
        stateful(), user_endpoint=streams_group_heartbeat.StreamsEndpoint(host="h", port=1)
    )
    await a.beat()
    before = described(world)
    assert before.group_state == "Reconciling"
    restarted = await again(world)
    found = described(restarted)
    assert (found.members, found.group_state) == (before.members, "Reconciling")
    assert (found.group_epoch, found.assignment_epoch) == (4, 4)
    (log,) = found.topology.subtopologies[0].state_changelog_topics
    assert (log.name, log.partitions) == ("log", 0), "its numbers are found with a heartbeat"
    a.world = b.world = restarted
    assert (await a.beat()).error_code == (await b.beat()).error_code == 0
    for each in (a, b, a, b):
        await each.beat()
    assert described(restarted).group_state == "Stable"
    assert sorted(a.active + b.active) == [0, 1]
    restarted.pass_ms(SESSION_MS)
    assert listed(restarted) == [(GROUP, "streams", "Empty")]


async def test_a_silent_member_goes_and_its_tasks_fall_to_the_others() -> None:
    world = await prompt_world()
    a, b = Thread(world, "a"), Thread(world, "b")
    await a.join()
    await b.join()
    await a.beat()
    world.pass_ms(SESSION_MS - 1)
    await a.beat()
    world.pass_ms(1)
    await a.beat()
    assert a.active == [0, 1]
    assert (await b.beat()).error_code == E.UNKNOWN_MEMBER_ID


async def test_a_member_that_gives_nothing_back_is_taken_out() -> None:
    world = await prompt_world()
    a, b = Thread(world, "a"), Thread(world, "b")
    await a.join()
    await b.join()
    await a.beat()
    assert described(world).members[0].assignment.active_tasks[0].partitions == [0]
    for _ in range(2):
        world.pass_ms(REBALANCE_MS // 2)
        await a.beat(owns=False)
        await b.beat()
    assert [each.member_id for each in described(world).members] == ["b"]
    await b.beat()
    assert b.active == [0, 1]


async def test_offsets_are_committed_by_members_of_the_epoch_or_for_older_tasks() -> None:
    world = await prompt_world()
    a = Thread(world, "a")
    await a.join()
    assert world.commit_offsets(
        ("t", 0, 5), member_id="a", generation_id_or_member_epoch=a.epoch
    ) == [0]
    await a.beat(rack_id="other")
    assert world.commit_offsets(
        ("t", 0, 6), member_id="a", generation_id_or_member_epoch=a.epoch - 1
    ) == [0]
    stale = [E.STALE_MEMBER_EPOCH]
    assert (
        world.commit_offsets(("t", 0, 7), member_id="a", generation_id_or_member_epoch=1) == stale
    )
    assert (
        world.commit_offsets(("t", 0, 7), member_id="a", generation_id_or_member_epoch=99) == stale
    )
    unknown = [E.UNKNOWN_MEMBER_ID]
    assert (
        world.commit_offsets(("t", 0, 7), member_id="b", generation_id_or_member_epoch=a.epoch)
        == unknown
    )
    old = world.commit_offsets(
        ("t", 0, 7), member_id="a", generation_id_or_member_epoch=a.epoch, version=8
    )
    assert old == [E.UNSUPPORTED_VERSION]
    assert world.offsets() == {("t", 0): 6}
    assert (_fetch_code(world, "a", a.epoch), _fetch_code(world, "a", 1)) == (0, stale[0])
    transactional = world.broker.groups.transactional_commits
    with pytest.raises(KafkaError) as refused:
        transactional.check(world.group(), MemberClaim("a", None, 99), {})
    assert refused.value.code == E.ILLEGAL_GENERATION
    transactional.check(world.group(), MemberClaim("a", None, a.epoch), {})


def _fetch_code(world: GroupWorld, member: str, epoch: int) -> int:
    asked = offset_fetch.OffsetFetchRequestGroup(
        group_id=GROUP, member_id=member, member_epoch=epoch, topics=None
    )
    code: int = world.now(offset_fetch.OffsetFetchRequest(groups=[asked]), 9).groups[0].error_code
    return code


async def test_a_deleted_group_is_gone_after_a_restart_and_so_are_its_offsets() -> None:
    world = await prompt_world()
    a = Thread(world, "a")
    await a.join()
    world.commit_offsets(("t", 0, 5), member_id="a", generation_id_or_member_epoch=a.epoch)
    request = delete_groups.DeleteGroupsRequest(groups_names=[GROUP])
    refused = await settled(Promise(world, request, 2))
    assert refused.results[0].error_code == E.NON_EMPTY_GROUP
    await a.leave()
    assert (await settled(Promise(world, request, 2))).results[0].error_code == 0
    assert world.broker.groups.footprint.total_bytes == 0
    restarted = await again(world)
    assert (listed(restarted), restarted.broker.groups.groups) == ([], {})


async def test_groups_without_members_change_their_kind() -> None:
    world = await prompt_world()
    world.commit_offsets(("t", 0, 5))
    a = Thread(world, "a")
    await a.join()
    assert (listed(world), world.offsets()) == ([(GROUP, "streams", "Stable")], {("t", 0): 5})
    member = world.member()
    assert member.join().answer.error_code == E.INCONSISTENT_GROUP_PROTOCOL
    await a.leave()
    world.stable(world.member())
    assert (listed(world), world.offsets()) == ([(GROUP, "classic", "Stable")], {("t", 0): 5})
    assert (await a.join()).error_code == E.GROUP_ID_NOT_FOUND
    restarted = await again(world)
    assert listed(restarted) == [(GROUP, "classic", "Stable")]


async def test_a_change_of_kind_that_could_not_be_written_goes_with_the_next_generation() -> None:
    world = await prompt_world()
    a = Thread(world, "a")
    await a.join()
    await a.leave()
    writes = RefusedWrites(world)
    member = world.member()
    join = member.join()
    writes.end()
    world.pass_ms(DELAY_MS)
    world.pass_ms(DELAY_MS)
    member.took(join)
    world.assign(member)
    restarted = await again(world)
    assert listed(restarted) == [(GROUP, "classic", "Stable")]


async def test_groups_of_other_kinds_refuse_and_are_refused() -> None:
    world = await prompt_world()
    joining = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="c", member_id="m", member_epoch=0, rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"], topic_partitions=[],
    )  # fmt: skip
    assert (await settled(Promise(world, joining, 1))).error_code == 0
    assert (await Thread(world, "a", "c").join()).error_code == E.GROUP_ID_NOT_FOUND
    await Thread(world, "a").join()
    joining.group_id = GROUP
    assert (await settled(Promise(world, joining, 1))).error_code == E.GROUP_ID_NOT_FOUND
    assert sorted(listed(world)) == [("c", "consumer", "Stable"), (GROUP, "streams", "Stable")]


async def test_a_topology_that_is_refused_leaves_no_group() -> None:
    world = await prompt_world()
    a = Thread(world, "a")
    changelog = StreamsTopicInfo(name="log", partitions=2)
    wrong = plain()
    wrong.subtopologies[0].state_changelog_topics = [changelog]
    assert (await a.join(wrong)).error_code == E.STREAMS_INVALID_TOPOLOGY
    assert (await a.join(plain(*["t"] * 1, epoch=-1))).error_code == E.STREAMS_INVALID_TOPOLOGY
    assert (await a.join(StreamsTopology(subtopologies=[*plain().subtopologies] * 2))).error_code
    assert (listed(world), world.broker.groups.footprint.total_bytes) == ([], 0)


async def test_words_that_are_too_many_are_refused() -> None:
    world = await prompt_world()
    tags = [streams_group_heartbeat.StreamsKeyValue(key=str(number)) for number in range(101)]
    a = Thread(world, "a")
    assert (await a.join(client_tags=tags)).error_code == E.INVALID_REQUEST
    assert (await a.join(process_id="p" * 1001)).error_code == E.INVALID_REQUEST
    many = plain(*(f"topic-{number:050}" for number in range(10_000)))
    assert (await a.join(many)).error_code == E.INVALID_REQUEST, "no record holds it"
    assert listed(world) == []


async def test_a_member_in_a_state_of_a_later_kafka_has_to_join_again() -> None:
    world = await prompt_world()
    a = Thread(world, "a")
    await a.join()
    group = world.group().modern
    assert isinstance(group, StreamsGroup)
    value = group.members["a"].current_value()
    value.state = 77
    key = streams_key(StreamsKind.CURRENT, GROUP, "a")
    value.member_epoch -= 1
    await settled_write(world, key, framed_value(value))
    restarted = await again(world)
    a.world, a.epoch = restarted, value.member_epoch
    assert (await a.beat()).error_code == E.FENCED_MEMBER_EPOCH
    assert (await a.join()).error_code == 0
    assert a.active == [0, 1]


async def settled_write(world: GroupWorld, key: bytes, value: bytes | None) -> None:
    world.broker.groups.topic.write(GROUP, [(key, value)])
    await asyncio.sleep(0)


async def test_a_group_of_which_only_its_epoch_is_known_waits_for_a_topology() -> None:
    world = await prompt_world()
    await settled_write(
        world, streams_key(StreamsKind.GROUP, GROUP), framed_value(StreamsGroupValue(epoch=7))
    )
    restarted = await again(world)
    found = described(restarted)
    assert (found.group_state, found.group_epoch, found.topology) == ("Empty", 7, None)
    a = Thread(restarted, "a")
    await configure(
        restarted, streams_initial_rebalance_delay_ms="0", streams_assignment_interval_ms="0"
    )
    await a.join()
    assert (a.epoch, a.active) == (8, [0, 1])


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_members_do_no_task_is_active_twice_and_in_the_end_all_run(
    seed: int,
) -> None:
    """Threads join, leave, fall silent and beat in any order, some with what they own."""
    dice = random.Random(seed)
    world = await prompt_world()
    await configure(world, streams_num_standby_replicas=str(dice.randrange(3)))
    threads = {name: Thread(world, name) for name in "abcde"}
    alive: set[str] = set()
    for _ in range(120):
        name = dice.choice("abcde")
        thread, what = threads[name], dice.random()
        if name not in alive:
            await thread.join(stateful(), process_id=dice.choice("pqr"))
            alive.add(name)
        elif what < 0.1:
            await thread.leave()
            alive.discard(name)
        else:
            answer = await thread.beat(owns=what < 0.8)
            assert answer.error_code == 0
        _check_once(world)
    for _ in range(12):
        for name in sorted(alive):
            await threads[name].beat()
            _check_once(world)
    running = [index for name in alive for index in threads[name].active]
    assert sorted(running) == ([0, 1] if alive else [])
    assert described(world).group_state == ("Stable" if alive else "Empty")
    restarted = await again(world)
    assert described(restarted).members == described(world).members


def _check_once(world: GroupWorld) -> None:
    group = world.group().modern
    assert isinstance(group, StreamsGroup)
    held = [
        (name, index, each.process_id)
        for each in group.members.values()
        for tasks in (each.held, each.revoking)
        for name, indexes in tasks.active.items()
        for index in indexes
    ]
    assert len({(name, index) for name, index, _ in held}) == len(held), held
    assert {tuple(task): of for task, of in group.owners.active.items()} == {
        (name, index): of for name, index, of in held
    }


async def test_what_members_say_has_a_limit_of_memory() -> None:
    world = await prompt_world(horolog_group_members_max_bytes=str(1 << 20))
    a = Thread(world, "a")
    await a.join()
    key_value = streams_group_heartbeat.StreamsKeyValue
    tags = [key_value(key=f"{number:0900}", value="v" * 900) for number in range(100)]
    threads = [Thread(world, f"m{number}") for number in range(20)]
    assert [(await each.join()).error_code for each in threads] == [0] * 20
    found = [(await each.beat(owns=False, client_tags=tags)).error_code for each in threads]
    assert set(found) == {0, E.GROUP_MAX_SIZE_REACHED}
    assert world.broker.groups.footprint.total_bytes <= 1 << 20
