"""What cannot be restored after a start is counted, named and left out; all else is served."""

from collections.abc import Callable

import pytest

from broker.groups.records.classic import GroupMetadataValue, MemberMetadata, group_key, group_value
from broker.groups.records.consumer import (
    CurrentPartitions,
    CurrentValue,
    MemberValue,
    RecordKind,
    Said,
    key_of,
    value_of,
)
from broker.runtime.event_log import journal
from broker.state.state_topic import Row
from broker.transactions.transaction_records import transaction_key
from protocol.errors import ErrorCode as E
from protocol.wire import ZERO_UUID
from tests.support.worlds.group_world import GroupWorld, group_world
from tests.support.worlds.transaction_world import producer, transaction_world

TWICE = MemberMetadata(
    member_id="m", client_id="c", client_host="/h", session_timeout=6000,
    subscription=b"", assignment=b"",
)  # fmt: skip


def twice_the_same_member() -> list[Row]:
    value = GroupMetadataValue(
        protocol_type="consumer", generation=3, protocol="range", leader="m", members=[TWICE, TWICE]
    )
    return [(group_key("odd"), group_value(value))]


def a_generation_that_nobody_can_read() -> list[Row]:
    return [(group_key("odd"), b"\x00\x03\xff")]


def a_member(current: CurrentValue) -> list[Row]:
    said = Said(MemberValue(client_id="c", client_host="/h", rebalance_timeout_ms=1), None)
    return [
        (key_of(RecordKind.MEMBER, "odd", "m"), value_of(said)),
        (key_of(RecordKind.CURRENT, "odd", "m"), value_of(current)),
    ]


def a_partition_held_twice() -> list[Row]:
    held = CurrentPartitions(topic_id=ZERO_UUID, partitions=[0], assignment_epochs=[1])
    return a_member(
        CurrentValue(
            member_epoch=1, previous_member_epoch=0, state=0, assigned=[held],
            pending_revocation=[held],
        )
    )  # fmt: skip


def a_member_whose_tags_end_early() -> list[Row]:
    said = Said(MemberValue(client_id="c", client_host="/h", rebalance_timeout_ms=1), None)
    return [(key_of(RecordKind.MEMBER, "odd", "m"), value_of(said)[:-1])]


ODD = pytest.mark.parametrize(
    "odd",
    [
        twice_the_same_member,
        a_generation_that_nobody_can_read,
        a_partition_held_twice,
        a_member_whose_tags_end_early,
    ],
)


async def restarted_with(rows: list[Row]) -> GroupWorld:
    world = await group_world(offsets_topic_num_partitions="1")
    for name in ("before", "odd"):
        world.commit_offsets(("t", 0, 7), group_id=name)
    world.broker.groups.topic.write("odd", rows)
    world.commit_offsets(("t", 0, 8), group_id="after")
    return world.restarted()


@ODD
async def test_a_group_that_cannot_be_restored_is_left_out_and_named(
    odd: Callable[[], list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(journal, "write", lines.append)
    again = await restarted_with(odd())
    await again.broker.groups.load()
    assert again.offsets("before") == {("t", 0): 7}
    assert again.offsets("odd") == {("t", 0): 7}
    assert again.offsets("after") == {("t", 0): 8}
    loading = again.broker.groups.loading
    assert loading.unreadable_records == 1
    assert loading.fault is None
    assert loading.note == "1 of __consumer_offsets were left out, see the log"
    assert "owner=odd" in "".join(lines) or "offset 2" in "".join(lines)
    assert again.broker.groups.footprint.total_bytes == 0
    member = again.member(group_id="odd")
    assert member.join().answer is None


async def test_a_partition_that_cannot_be_restored_is_named_and_the_others_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await group_world(offsets_topic_num_partitions="2")
    names = [f"group-{n}" for n in range(6)]
    for name in names:
        world.commit_offsets(("t", 0, 1), group_id=name)
    index_of = world.broker.groups.topic.index_of
    again = world.restarted()
    replay = again.broker.groups.commits.replay

    def broken(group: object, offsets: object) -> None:
        if index_of(group.group_id) == 0:  # type: ignore[attr-defined]
            raise ZeroDivisionError
        replay(group, offsets)  # type: ignore[arg-type]

    monkeypatch.setattr(again.broker.groups.commits, "replay", broken)
    await again.broker.groups.load()
    for name in names:
        code = E.COORDINATOR_NOT_AVAILABLE if index_of(name) == 0 else 0
        assert again.commit_offsets(("t", 0, 2), group_id=name) == [code]
    fault = again.broker.groups.loading.fault
    assert fault is not None
    assert "__consumer_offsets-0" in fault


async def test_a_transactional_id_that_cannot_be_restored_keeps_no_other_from_its_work() -> None:
    world = await transaction_world()
    sound = await producer(world, "sound")
    assert await sound.write(b"a") == 0
    for value in (b"\x00\x01\xff", b"\x00\x09"):
        world.broker.transactions.topic.write("odd", [(transaction_key("odd"), value)])
    again = await world.reborn()
    loading = again.broker.transactions.loading
    assert loading.unreadable_records == 2
    sound.world = again
    assert await sound.end(commit=True) == 0
    await again.rests()
    assert await again.committed() == [b"a"]


async def test_a_transaction_that_cannot_be_ended_keeps_no_other_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await transaction_world()
    for name in ("first", "second"):
        await (await producer(world, name)).write(b"a")
    steps = world.broker.transactions.steps
    abort = steps.abort

    async def broken(owner: object, why: str) -> None:
        if owner.transactional_id == "first":  # type: ignore[attr-defined]
            raise ZeroDivisionError
        await abort(owner, why)  # type: ignore[arg-type]

    monkeypatch.setattr(steps, "abort", broken)
    await world.passes(600_000)
    assert set(steps.open) == {"first"}
