"""Starts of share groups that are set by hand: made with the group, kept over a kill, forgotten."""

import asyncio
from typing import Any

from broker.share.state.key import ShareKey
from protocol.apis import (
    alter_share_group_offsets,
    delete_share_group_offsets,
    describe_share_group_offsets,
    share_group_heartbeat,
)
from protocol.errors import ErrorCode as E
from tests.support.worlds.group_world import GROUP, GroupWorld, Promise, group_world


async def answered(world: GroupWorld, request: Any, version: int) -> Any:
    promise = Promise(world, request, version)
    for _ in range(10):
        await asyncio.sleep(0)
    assert promise.error is None, promise.error
    assert promise.answer is not None, "it waits"
    return promise.answer


async def altered(world: GroupWorld, **starts: int) -> Any:
    """Sets the starts of `p0` and so on in topic t."""
    of = alter_share_group_offsets
    partitions = [
        of.AlterShareGroupOffsetsPartition(partition_index=int(name[1:]), start_offset=start)
        for name, start in starts.items()
    ]
    topic = of.AlterShareGroupOffsetsTopic(topic_name="t", partitions=partitions)
    request = of.AlterShareGroupOffsetsRequest(group_id=GROUP, topics=[topic])
    return await answered(world, request, 0)


async def described(world: GroupWorld) -> list[tuple[int, int]]:
    """Partition and start of all that the group remembers."""
    of = describe_share_group_offsets
    asked = of.DescribeShareGroupOffsetsGroup(group_id=GROUP, topics=None)
    request = of.DescribeShareGroupOffsetsRequest(groups=[asked, asked])
    (told,) = (await answered(world, request, 1)).groups
    return [(p.partition_index, p.start_offset) for topic in told.topics for p in topic.partitions]


async def again(world: GroupWorld) -> GroupWorld:
    restarted = world.restarted()
    await restarted.broker.groups.load()
    await restarted.broker.share_states.load()
    return restarted


async def test_starts_that_were_set_are_known_after_a_kill() -> None:
    world = await group_world()
    answer = await altered(world, p0=4, p1=0, p9=1)
    codes = [each.error_code for each in answer.responses[0].partitions]
    assert codes == [0, 0, E.UNKNOWN_TOPIC_OR_PARTITION]
    restarted = await again(world)
    assert await described(restarted) == [(0, 4), (1, 0)]
    topic_id = restarted.broker.topics.image.topics["t"].topic_id
    state = restarted.broker.share_states.states[ShareKey(GROUP, topic_id, 0)]
    assert (state.state_epoch, state.start_offset, state.finished) == (1, 4, 0)


async def test_what_was_forgotten_stays_so() -> None:
    world = await group_world()
    await altered(world, p0=4)
    of = delete_share_group_offsets
    request = of.DeleteShareGroupOffsetsRequest(
        group_id=GROUP, topics=[of.DeleteShareGroupOffsetsTopic(topic_name="t")]
    )
    assert (await answered(world, request, 0)).responses[0].error_code == 0
    assert await described(await again(world)) == []


async def test_nobody_sets_the_starts_of_a_group_with_members() -> None:
    world = await group_world()
    join = share_group_heartbeat.ShareGroupHeartbeatRequest(
        group_id=GROUP, member_id="m", member_epoch=0, subscribed_topic_names=["t"]
    )
    assert (await answered(world, join, 1)).error_code == 0
    assert (await altered(world, p0=4)).error_code == E.NON_EMPTY_GROUP
    assert await described(world) == [(0, -1), (1, -1)]


async def test_a_group_that_would_have_nothing_is_not_made() -> None:
    world = await group_world()
    answer = await altered(world, p9=1)
    assert answer.error_code == 0
    assert GROUP not in world.broker.groups.groups


async def test_a_start_that_cannot_be_stored_is_named() -> None:
    world = await group_world()
    topic_id = world.broker.topics.image.topics["t"].topic_id
    await altered(world, p0=4)
    key = ShareKey(GROUP, topic_id, 0)
    world.broker.share_states.initialize(key, 9, 4)
    (result,) = (await altered(world, p0=5)).responses[0].partitions
    assert result.error_code == E.FENCED_STATE_EPOCH
    assert await described(world) == [(0, 4)], "it is as it was"
