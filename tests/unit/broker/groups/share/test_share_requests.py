"""Requests of share groups: whose ids they are, restarts, deletion, topics that go."""

import asyncio
from typing import Any

import pytest

from broker.groups.classic.members import MemberClaim
from broker.groups.records.assigned import framed_value
from broker.groups.records.share import ShareGroupValue, ShareKind, ShareMemberValue, share_key
from broker.share.state.key import ShareKey
from protocol.apis import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    delete_topics,
    describe_groups,
    list_groups,
    offset_delete,
    offset_fetch,
    share_group_describe,
    share_group_heartbeat,
)
from protocol.apis.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.errors import ErrorCode as E
from protocol.errors import KafkaError
from tests.support.worlds.group_world import GROUP, GroupWorld, Promise, group_world
from tests.support.worlds.handler_world import altered

SESSION_MS = 45_000


async def settled(promise: Promise) -> Any:
    for _ in range(10):
        await asyncio.sleep(0)
    assert promise.error is None, promise.error
    assert promise.answer is not None, "it waits"
    return promise.answer


async def beat(world: GroupWorld, member: str, epoch: int, *names: str, **said: Any) -> Any:
    request = share_group_heartbeat.ShareGroupHeartbeatRequest(
        group_id=said.pop("group", GROUP),
        member_id=member,
        member_epoch=epoch,
        subscribed_topic_names=list(names) or None,
        **said,
    )
    return await settled(Promise(world, request, 1))


def told(answer: Any) -> list[int]:
    return [index for each in answer.assignment.topic_partitions for index in each.partitions]


def described(world: GroupWorld, group: str = GROUP) -> Any:
    request = share_group_describe.ShareGroupDescribeRequest(group_ids=[group])
    return world.now(request, 1).groups[0]


def listed(world: GroupWorld, **filters: Any) -> list[tuple[str, str, str, str]]:
    found = world.now(list_groups.ListGroupsRequest(**filters), 5).groups
    return [
        (each.group_id, each.group_type, each.group_state, each.protocol_type) for each in found
    ]


async def deleted(world: GroupWorld, group: str = GROUP) -> int:
    request = delete_groups.DeleteGroupsRequest(groups_names=[group])
    code: int = (await settled(Promise(world, request, 2))).results[0].error_code
    return code


async def again(world: GroupWorld) -> GroupWorld:
    restarted = world.restarted()
    await restarted.broker.groups.load()
    await restarted.broker.share_states.load()
    return restarted


async def test_a_member_joins_is_described_listed_and_leaves() -> None:
    world = await group_world()
    answer = await beat(world, "a", 0, "t")
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "a", 3)
    assert (answer.heartbeat_interval_ms, told(answer)) == (5000, [0, 1])
    topic_id = world.broker.topics.image.topics["t"].topic_id
    states = world.broker.share_states.states
    assert [states[ShareKey(GROUP, topic_id, index)].start_offset for index in (0, 1)] == [-1, -1]
    group = described(world)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 3, 3)
    assert (group.assignor_name, group.members[0].subscribed_topic_names) == ("simple", ["t"])
    (part,) = group.members[0].assignment.topic_partitions
    assert (part.topic_id, part.topic_name, part.partitions) == (topic_id, "t", [0, 1])
    assert listed(world) == [(GROUP, "share", "Stable", "share")]
    assert listed(world, types_filter=["consumer"]) == []
    left = await beat(world, "a", -1)
    assert (left.member_id, left.member_epoch, left.heartbeat_interval_ms) == ("a", -1, 0)
    assert listed(world, types_filter=["Share"]) == [(GROUP, "share", "Empty", "share")]


async def test_a_broker_that_was_killed_goes_on_where_it_was() -> None:
    world = await group_world()
    await beat(world, "a", 0, "t", rack_id="r")
    await beat(world, "b", 0, "t")
    world.pass_ms(1000)
    await beat(world, "b", 3)
    before = described(world)
    restarted = await again(world)
    assert described(restarted) == before
    assert (await beat(restarted, "a", 3)).error_code == 0
    restarted.pass_ms(SESSION_MS + 1)
    assert described(restarted).members == []
    third = await again(restarted)
    assert listed(third) == [(GROUP, "share", "Empty", "share")]
    await third.broker.groups.expire()
    assert listed(third) == [(GROUP, "share", "Empty", "share")]


async def test_a_deleted_group_is_forgotten_with_its_states() -> None:
    world = await group_world()
    await beat(world, "a", 0, "t")
    assert await deleted(world) == E.NON_EMPTY_GROUP
    await beat(world, "a", -1)
    assert await deleted(world) == E.NONE
    assert await deleted(world) == E.GROUP_ID_NOT_FOUND
    restarted = await again(world)
    assert restarted.broker.groups.groups == {}
    assert restarted.broker.share_states.states == {}
    assert told(await beat(restarted, "a", 0, "t")) == [0, 1]


async def test_a_group_that_somebody_joins_while_it_is_deleted_stays() -> None:
    world = await group_world()
    await beat(world, "a", 0, "t")
    await beat(world, "a", -1)
    request = delete_groups.DeleteGroupsRequest(groups_names=[GROUP])
    deletion = Promise(world, request, 2)
    answer = await beat(world, "b", 0, "t")
    assert (await settled(deletion)).results[0].error_code == E.NON_EMPTY_GROUP
    assert answer.error_code == 0
    world.pass_ms(1000)
    epoch = (await beat(world, "b", answer.member_epoch)).member_epoch
    world.pass_ms(1000)
    await beat(world, "b", epoch)
    topic = described(world).members[0].assignment.topic_partitions[0]
    states = world.broker.share_states.states
    assert set(states) == {ShareKey(GROUP, topic.topic_id, index) for index in (0, 1)}


async def test_a_topic_that_is_deleted_leaves_nothing_in_the_group() -> None:
    world = await group_world()
    await world.make_topic("u", 1)
    await beat(world, "a", 0, "t", "u")
    names = [delete_topics.DeleteTopicState(name="u")]
    await world.call(delete_topics.DeleteTopicsRequest(topics=names), 6)
    share: Any = world.group().modern
    assert set(share.states.names.values()) == {"t"}
    await asyncio.sleep(0)
    assert len(world.broker.share_states.states) == 2
    world.pass_ms(1000)
    answer = await beat(world, "a", 3)
    assert (answer.member_epoch, told(answer)) == (4, [0, 1])
    await world.make_topic("u", 1)
    restarted = await again(world)
    assert set(restarted.group().modern.states.names.values()) == {"t"}  # type: ignore[union-attr]


async def test_a_topic_whose_deletion_a_crash_cut_short_is_forgotten_at_the_start() -> None:
    world = await group_world()
    await world.make_topic("u", 1)
    await beat(world, "a", 0, "t", "u")
    await world.broker.topics.delete(["u"])
    restarted = await again(world)
    share: Any = restarted.group().modern
    assert set(share.states.names.values()) == {"t"}


@pytest.mark.parametrize("kind", ["classic", "consumer", "offsets"])
async def test_ids_of_other_groups_are_refused(kind: str) -> None:
    world = await group_world()
    if kind == "classic":
        world.stable(world.member())
    elif kind == "offsets":
        world.commit_offsets(("t", 0, 5))
    else:
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id="c", member_epoch=0, rebalance_timeout_ms=1000,
            topic_partitions=[], subscribed_topic_names=["t"],
        )  # fmt: skip
        assert world.now(request, 1).error_code == 0
    for epoch, names in ((0, ["t"]), (3, []), (-1, [])):
        answer = await beat(world, "a", epoch, *names)
        assert (answer.error_code, answer.error_message) == (
            E.GROUP_ID_NOT_FOUND, f"Group {GROUP} is not a share group.",
        )  # fmt: skip
    assert described(world).error_message == f"Group {GROUP} is not a share group."


async def test_other_protocols_are_refused_in_a_share_group() -> None:
    world = await group_world()
    await beat(world, "a", 0, "t")
    join = world.member().join().answer
    assert (join.error_code, join.member_id) == (E.INCONSISTENT_GROUP_PROTOCOL, "")
    member = world.member()
    member.member_id, member.generation = "a", 3
    assert member.heartbeat() == E.UNKNOWN_MEMBER_ID
    assert member.leave() == [E.UNKNOWN_MEMBER_ID]
    assert world.commit_offsets(("t", 0, 5)) == [E.GROUP_ID_NOT_FOUND]
    codes = world.commit_offsets(("t", 0, 5), member_id="a", generation_id_or_member_epoch=3)
    assert codes == [E.GROUP_ID_NOT_FOUND]
    wanted = offset_fetch.OffsetFetchRequestGroup(group_id=GROUP, topics=None)
    fetched = world.now(offset_fetch.OffsetFetchRequest(groups=[wanted]), 9).groups[0]
    assert fetched.error_code == E.GROUP_ID_NOT_FOUND
    assert world.now(offset_delete.OffsetDeleteRequest(group_id=GROUP), 0).error_code == 69
    transactional = world.broker.groups.transactional_commits
    with pytest.raises(KafkaError) as refusal:
        transactional.check(world.group(), MemberClaim("", None, -1), [])
    assert refusal.value.code == E.GROUP_ID_NOT_FOUND
    request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id="c", member_epoch=0, rebalance_timeout_ms=1000,
        topic_partitions=[], subscribed_topic_names=["t"],
    )  # fmt: skip
    refused = world.now(request, 1)
    assert (refused.error_code, refused.error_message) == (
        E.GROUP_ID_NOT_FOUND, f"Group {GROUP} is not a consumer group.",
    )  # fmt: skip
    describe = consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[GROUP])
    assert world.now(describe, 1).groups[0].error_code == E.GROUP_ID_NOT_FOUND
    classic = world.now(describe_groups.DescribeGroupsRequest(groups=[GROUP]), 6).groups[0]
    assert (classic.error_code, classic.group_state) == (E.GROUP_ID_NOT_FOUND, "Dead")
    assert listed(world) == [(GROUP, "share", "Stable", "share")]


async def test_nonsense_is_refused_with_kafkas_words() -> None:
    world = await group_world()
    for member, epoch, names, said, text in (
        ("", 0, ["t"], {}, "Invalid member id in the request."),
        ("m" * 37, 0, ["t"], {}, "Invalid member id in the request."),
        (" ", 0, ["t"], {}, "MemberId can't be empty."),
        ("a", 0, ["t"], {"group": " "}, "GroupId can't be empty."),
        ("a", 0, ["t"], {"rack_id": ""}, "RackId can't be empty."),
        ("a", 0, [], {}, "SubscribedTopicNames must be set in first request."),
        ("a", -2, [], {}, "MemberEpoch is invalid."),
    ):
        answer = await beat(world, member, epoch, *names, **said)
        assert (answer.error_code, answer.error_message) == (E.INVALID_REQUEST, text)
    unknown = await beat(world, "a", 1)
    assert (unknown.error_code, unknown.error_message) == (69, f"Share group {GROUP} not found.")
    unknown = await beat(world, "a", -1)
    assert (unknown.error_code, unknown.error_message) == (69, f"Group {GROUP} not found.")
    assert world.broker.groups.groups == {}


async def test_a_full_group_refuses_strangers_before_it_looks_at_their_epoch() -> None:
    world = await group_world(group_share_max_size="1")
    await beat(world, "a", 0, "t")
    assert (await beat(world, "b", 0, "t")).error_code == E.GROUP_MAX_SIZE_REACHED
    assert (await beat(world, "b", 5)).error_code == E.GROUP_MAX_SIZE_REACHED
    assert (await beat(world, "a", 3)).error_code == E.NONE


async def test_a_group_whose_members_no_memory_is_left_for_is_not_made() -> None:
    world = await group_world(horolog_group_members_max_bytes="1")
    assert (await beat(world, "a", 0, "t")).error_code == E.GROUP_MAX_SIZE_REACHED
    assert world.broker.groups.groups == {}


async def test_groups_of_a_kafka_are_taken_over() -> None:
    world = await group_world()
    said = ShareMemberValue(client_id="c", client_host="/h", subscribed_topic_names=["t"])
    rows = [
        (share_key(ShareKind.MEMBER, "kafkas", "m"), framed_value(said)),
        (share_key(ShareKind.GROUP, "kafkas"), framed_value(ShareGroupValue(epoch=7))),
    ]
    world.broker.groups.topic.write("kafkas", rows)
    restarted = await again(world)
    assert (described(restarted, "kafkas").group_epoch, restarted.broker.groups.loading.note) == (
        7, None,
    )  # fmt: skip
    answer = await beat(restarted, "m", 0, "t", group="kafkas")
    assert (answer.error_code, told(answer)) == (0, [0, 1])


async def set_on_group(world: GroupWorld, **settings: str) -> None:
    """Settings of the group, by their keys with _ for a dot."""
    rows = [(name.replace("_", "."), 0, value) for name, value in settings.items()]
    request = IncrementalAlterConfigsRequest(resources=[altered(32, GROUP, rows)])
    answer = await world.call(request, 1)
    assert answer.responses[0].error_code == 0, answer


async def test_a_group_has_times_of_its_own() -> None:
    world = await group_world()
    await set_on_group(
        world,
        share_session_timeout_ms="50000",
        share_heartbeat_interval_ms="7000",
        share_assignment_interval_ms="0",
    )
    assert (await beat(world, "a", 0, "t")).heartbeat_interval_ms == 7000
    assert told(await beat(world, "b", 0, "t")) != [], "it is assigned at once"
    world.pass_ms(SESSION_MS + 4000)
    assert len(described(world).members) == 2
    world.pass_ms(1000)
    assert described(world).members == []
