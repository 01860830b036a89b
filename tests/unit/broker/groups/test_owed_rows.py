"""Rows that could not be written: the last change counts, nobody is answered before it does."""

import pytest

from broker.groups.classic.members import Footprint
from broker.groups.owed_rows import OwedRows
from protocol.apis import delete_groups
from protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.errors import ErrorCode as E
from tests.support.worlds.group_world import GROUP, GroupWorld, Promise, group_world
from tests.support.worlds.refused_writes import RefusedWrites

READS_T = b"\0\1\0\0\0\1\0\1t\xff\xff\xff\xff\0\0\0\0"
NOTHING = b"\0\0\0\0\0\0\xff\xff\xff\xff"


def ask(world: GroupWorld, member: str, epoch: int) -> Promise:
    request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member, member_epoch=epoch)
    if epoch == 0:
        request.rebalance_timeout_ms, request.topic_partitions = 20_000, []
        request.subscribed_topic_names = ["t"]
    return Promise(world, request, 1)


def members(world: GroupWorld) -> set[str]:
    modern = world.group().modern
    assert modern is not None
    return set(modern.members)  # type: ignore[call-overload]


async def after_restart(world: GroupWorld) -> GroupWorld:
    again = world.restarted()
    await again.broker.groups.load()
    return again


async def test_who_left_is_not_back_after_two_writes_that_failed() -> None:
    world = await group_world(horolog_durability="fsync")
    for name in ("a", "b"):
        ask(world, name, 0)
        world.commit.sync()
    ask(world, "c", 0)
    ask(world, "c", -1)
    world.commit.fail()
    assert ask(world, "a", 2).answer is None
    world.commit.sync()
    assert members(await after_restart(world)) == {"a", "b"}


async def test_a_heartbeat_that_changes_nothing_waits_for_what_is_under_way() -> None:
    world = await group_world(horolog_durability="fsync")
    first = ask(world, "a", 0)
    beat = ask(world, "a", 2)
    assert (first.answer, beat.answer) == (None, None)
    world.commit.sync()
    assert (first.answer.error_code, beat.answer.error_code) == (0, 0)
    ask(world, "b", 0)
    beat = ask(world, "b", 3)
    world.commit.fail()
    assert beat.answer.error_code == E.NOT_COORDINATOR


async def test_a_heartbeat_that_changes_nothing_writes_what_is_owed() -> None:
    world = await group_world()
    assert ask(world, "a", 0).answer.error_code == 0
    writes = RefusedWrites(world)
    assert ask(world, "b", 0).answer.error_code == E.NOT_COORDINATOR
    assert ask(world, "b", 3).answer.error_code == E.NOT_COORDINATOR
    writes.end()
    assert ask(world, "b", 3).answer.error_code == 0
    assert members(await after_restart(world)) == {"a", "b"}


async def test_a_group_is_deleted_with_rows_that_are_owed() -> None:
    world = await group_world()
    assert ask(world, "a", 0).answer.error_code == 0
    writes = RefusedWrites(world)
    assert ask(world, "a", -1).answer.error_code == E.NOT_COORDINATOR
    writes.end()
    request = delete_groups.DeleteGroupsRequest(groups_names=[GROUP])
    assert world.now(request, 2).results[0].error_code == 0
    assert (await after_restart(world)).broker.groups.groups == {}


async def test_a_downgrade_that_could_not_be_written_is_written_with_the_next_generation() -> None:
    world = await group_world(group_consumer_migration_policy="bidirectional")
    old = world.member(protocols=(("range", READS_T),))
    join = old.join()
    world.pass_ms(3000)
    old.took(join)
    old.sync({old.member_id: NOTHING})
    assert ask(world, "new", 0).answer.error_code == 0
    assert ask(world, "new", 0).answer.error_code == 0
    writes = RefusedWrites(world)
    ask(world, "new", -1)
    writes.end()
    assert world.group().modern is None
    old.took(old.ask_to_join())
    assert old.sync({old.member_id: b"part"}).answer.assignment == b"part"
    again = (await after_restart(world)).group()
    assert (again.modern, again.state_name, list(again.members)) == (
        None, "Stable", [old.member_id],
    )  # fmt: skip


async def test_rows_that_are_refused_count_as_memory_of_groups() -> None:
    world = await group_world()
    footprint = world.broker.groups.footprint
    assert ask(world, "a", 0).answer.error_code == 0
    before = footprint.total_bytes
    writes = RefusedWrites(world)
    for number in range(20):
        assert ask(world, f"m{number}", 0).answer.error_code == E.NOT_COORDINATOR
        ask(world, f"m{number}", -1)
    assert footprint.total_bytes > before + 20 * 3 * 20  # tombstones of a member: three keys
    writes.end()
    assert ask(world, "a", 0).answer.error_code == 0
    assert footprint.total_bytes == before
    writes = RefusedWrites(world)
    ask(world, "a", -1)
    assert footprint.total_bytes > 0
    partition = world.broker.groups.topic.partitions[world.broker.groups.topic.index_of(GROUP)]
    world.broker.groups.lead_no_more(partition)
    assert footprint.total_bytes == 0


# --- the books ---


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
@pytest.mark.parametrize("fates", [(True, True), (True, False), (False, True), (False, False)])
def test_of_two_writes_of_a_key_the_later_one_counts(
    order: tuple[int, int], fates: tuple[bool, bool]
) -> None:
    owed = OwedRows(Footprint())
    rows = {1: [(b"k", b"old")], 2: [(b"k", None)]}
    assert [owed.begin(rows[1]), owed.begin(rows[2])] == [1, 2]
    assert owed.all() == [(b"k", None)]
    for number in order:
        error = OSError() if fates[number - 1] else None
        owed.end(number, error, rows[number])
    assert owed.refused() == ([(b"k", None)] if fates[1] else [])
    assert len(owed) == fates[1]


def test_rows_under_way_are_not_written_twice() -> None:
    owed = OwedRows(Footprint())
    number = owed.begin([(b"k", b"v")])
    assert owed.refused() == []
    owed.end(number, OSError(), [(b"k", b"v")])
    assert owed.refused() == [(b"k", b"v")]
    assert owed.refused(but={b"k"}) == []
    owed.begin([(b"k", b"v")])
    assert owed.refused() == []
