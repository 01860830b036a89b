"""Deletions of groups and offsets: what was answered stays, what was refused is tried again."""

from collections.abc import Sequence

import pytest

from broker.groups.records.classic import GroupRow, read_row
from broker.runtime.memory_account import MemoryClass
from broker.state.state_topic import Row
from protocol.apis import delete_groups, offset_delete
from protocol.errors import ErrorCode as E
from tests.support.worlds.group_world import DAY_MS, GroupWorld, group_world
from tests.support.worlds.refused_writes import RefusedWrites

PARTITIONS = 60


def is_of_group(rows: Sequence[Row]) -> bool:
    return any(isinstance(read_row(key, value), GroupRow) for key, value in rows)


def delete(world: GroupWorld) -> int:
    request = delete_groups.DeleteGroupsRequest(groups_names=["g"])
    return int(world.now(request, 2).results[0].error_code)


def delete_offsets(world: GroupWorld, *indexes: int) -> int:
    parts = [offset_delete.OffsetDeleteRequestPartition(partition_index=each) for each in indexes]
    topic = offset_delete.OffsetDeleteRequestTopic(name="t", partitions=parts)
    answer = world.now(offset_delete.OffsetDeleteRequest(group_id="g", topics=[topic]), 0)
    return int(answer.error_code)


async def after_restart(world: GroupWorld) -> GroupWorld:
    again = world.restarted()
    await again.broker.groups.load()
    return again


def offsets_bytes(world: GroupWorld) -> int:
    groups = world.broker.groups
    return groups.commits.stored_bytes + groups.pending.size_bytes


@pytest.fixture(name="world")
async def group_of_one_offset() -> GroupWorld:
    world = await group_world()
    world.commit_offsets(("t", 0, 1))
    return world


@pytest.mark.parametrize("way", ["group", "offsets", "expiry", "topic"])
async def test_more_offsets_than_a_batch_takes_go_for_good(way: str) -> None:
    world = await group_world(message_max_bytes="700")
    await world.make_topic("many", PARTITIONS)
    for index in range(PARTITIONS):
        assert world.commit_offsets(("many", index, 1)) == [0]
    if way == "group":
        assert delete(world) == 0
    elif way == "offsets":
        parts = [
            offset_delete.OffsetDeleteRequestPartition(partition_index=each)
            for each in range(PARTITIONS)
        ]
        topic = offset_delete.OffsetDeleteRequestTopic(name="many", partitions=parts)
        asked = offset_delete.OffsetDeleteRequest(group_id="g", topics=[topic])
        assert world.now(asked, 0).error_code == 0
    elif way == "expiry":
        world.clock.advance(8 * DAY_MS)
        await world.broker.groups.expire()
    else:
        world.broker.groups.topics_deleted(["many"])
    assert world.offsets() == {}
    assert offsets_bytes(world) == 0
    assert (await after_restart(world)).offsets() == {}


async def test_a_refused_deletion_of_a_group_is_an_error_and_can_be_asked_for_again(
    world: GroupWorld,
) -> None:
    writes = RefusedWrites(world)
    assert delete(world) == E.NOT_COORDINATOR
    assert delete(world) == E.NOT_COORDINATOR
    writes.end()
    assert delete(world) == 0
    assert delete(world) == E.GROUP_ID_NOT_FOUND
    assert offsets_bytes(world) == 0
    assert (await after_restart(world)).broker.groups.groups == {}


async def test_a_refused_deletion_of_offsets_is_an_error_and_can_be_asked_for_again(
    world: GroupWorld,
) -> None:
    world.commit_offsets(("t", 1, 1))
    writes = RefusedWrites(world)
    assert delete_offsets(world, 0) == E.NOT_COORDINATOR
    writes.end()
    assert delete_offsets(world, 0) == 0
    assert (await after_restart(world)).offsets() == {("t", 1): 1}


async def test_the_next_round_of_expiry_writes_a_refused_deletion(world: GroupWorld) -> None:
    world.commit_offsets(("t", 1, 1))
    writes = RefusedWrites(world)
    assert delete_offsets(world, 0) == E.NOT_COORDINATOR
    await world.broker.groups.expire()
    writes.end()
    await world.broker.groups.expire()
    assert world.offsets() == {("t", 1): 1}
    assert (await after_restart(world)).offsets() == {("t", 1): 1}


async def test_a_commit_after_a_refused_deletion_stays(world: GroupWorld) -> None:
    writes = RefusedWrites(world)
    assert delete_offsets(world, 0) == E.NOT_COORDINATOR
    writes.end()
    assert world.commit_offsets(("t", 0, 9)) == [0]
    await world.broker.groups.expire()
    assert world.offsets() == {("t", 0): 9}
    assert (await after_restart(world)).offsets() == {("t", 0): 9}


@pytest.mark.parametrize("how", ["deletion", "expiry", "join"])
async def test_a_group_of_which_something_is_left_is_nobodys_until_it_is_gone(how: str) -> None:
    world = await group_world()
    member = world.member()
    world.stable(member)
    member.commit(("t", 0, 1))
    member.leave()
    writes = RefusedWrites(world)
    writes.is_refused = is_of_group
    assert delete(world) == E.NOT_COORDINATOR
    assert world.offsets() == {}
    assert world.commit_offsets(("t", 0, 2)) == [E.COORDINATOR_LOAD_IN_PROGRESS]
    late = world.member()
    assert late.join().answer.error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    writes.end()
    if how == "deletion":
        assert delete(world) == 0
    elif how == "expiry":
        await world.broker.groups.expire()
    else:
        world.stable(late)
        late.leave()
        assert delete(world) == 0
    assert (await after_restart(world)).broker.groups.groups == {}


async def test_nobody_joins_a_group_while_it_is_being_deleted() -> None:
    world = await group_world(horolog_durability="fsync")
    group = world.broker.groups.find_or_make("g")
    removal = world.broker.groups.remove(group)
    assert world.member().join().answer.error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    world.commit.sync()
    assert removal.settled
    assert world.member().join().answer is None


async def test_what_is_owed_counts_as_memory(world: GroupWorld) -> None:
    before = world.broker.memory.used(MemoryClass.OFFSETS)
    assert before > 0
    RefusedWrites(world)
    assert delete_offsets(world, 0) == E.NOT_COORDINATOR
    assert 0 < world.broker.memory.used(MemoryClass.OFFSETS) <= before
