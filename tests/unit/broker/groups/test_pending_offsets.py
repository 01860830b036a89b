"""Offsets of open transactions: what time and deletions may do to them before they count."""

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from broker.groups.coordinator import MINUTE_MS
from broker.topics.names import CONSUMER_OFFSETS
from protocol.apis import delete_groups, offset_commit, offset_delete, write_txn_markers
from protocol.errors import ErrorCode as E
from tests.support.worlds.handler_world import ManualCommit
from tests.support.worlds.transaction_world import (
    GROUP,
    Producer,
    TransactionWorld,
    producer,
    transaction_world,
)

RETENTION_MS = 7 * 24 * 60 * MINUTE_MS


@pytest.fixture(name="world")
async def small_world() -> TransactionWorld:
    return await transaction_world(transaction_max_timeout_ms=str(2 * RETENTION_MS))


async def patient(world: TransactionWorld, transactional_id: str = "x") -> Producer:
    """A producer whose transaction may stay open for longer than offsets are kept."""
    made = Producer(world, transactional_id)
    assert await made.begin(timeout_ms=2 * RETENTION_MS) == E.NONE
    return made


async def plain_commit(world: TransactionWorld, offset: int, partition: int = 0) -> int:
    """A commit outside of any transaction; its code."""
    part = offset_commit.OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset
    )
    topic = offset_commit.OffsetCommitRequestTopic(name="t", partitions=[part])
    request = offset_commit.OffsetCommitRequest(group_id=GROUP, topics=[topic])
    answer = await world.call(request, 8)
    return int(answer.topics[0].partitions[0].error_code)


async def delete_group(world: TransactionWorld) -> int:
    request = delete_groups.DeleteGroupsRequest(groups_names=[GROUP])
    return int((await world.call(request, 2)).results[0].error_code)


async def delete_offset(world: TransactionWorld, partition: int = 0) -> int:
    part = offset_delete.OffsetDeleteRequestPartition(partition_index=partition)
    topic = offset_delete.OffsetDeleteRequestTopic(name="t", partitions=[part])
    request = offset_delete.OffsetDeleteRequest(group_id=GROUP, topics=[topic])
    answer = await world.call(request, 0)
    return int(answer.error_code or answer.topics[0].partitions[0].error_code)


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_round_of_expiry_takes_no_group_whose_first_transaction_is_open(
    world: TransactionWorld, restarts: bool
) -> None:
    one = await producer(world)
    assert await one.commit_offset(7) == 0
    if restarts:
        one.world = world = await world.reborn()
    await world.broker.groups.expire()
    assert set(world.broker.groups.groups) == {GROUP}
    assert await one.end() == 0
    await world.rests()
    assert await world.offset() == (7, 0)
    assert await (await world.reborn()).offset() == (7, 0)


async def test_an_old_offset_stays_while_a_transaction_has_a_newer_one(
    world: TransactionWorld,
) -> None:
    assert await plain_commit(world, 3) == 0
    assert await plain_commit(world, 4, partition=1) == 0
    one = await patient(world)
    world.clock.advance(RETENTION_MS)
    assert await one.commit_offset(7) == 0
    await world.broker.groups.expire()
    assert await world.offset() == (3, 0)
    assert await world.offset(1) == (-1, 0)
    assert await one.end() == 0
    await world.rests()
    assert await world.offset() == (7, 0)
    assert await (await world.reborn()).offset() == (7, 0)


async def test_after_its_transaction_was_aborted_a_group_of_nothing_goes(
    world: TransactionWorld,
) -> None:
    one = await producer(world)
    assert await one.commit_offset(7) == 0
    assert await one.end(commit=False) == 0
    await world.rests()
    await world.broker.groups.expire()
    assert world.broker.groups.groups == {}


async def test_a_refused_commit_drops_no_group_that_waits_for_a_transaction() -> None:
    world = await transaction_world(horolog_max_committed_offsets="1")
    one = await producer(world)
    assert await one.commit_offset(7) == 0
    assert await plain_commit(world, 3, partition=1) == E.INVALID_COMMIT_OFFSET_SIZE
    assert set(world.broker.groups.groups) == {GROUP}


@pytest.mark.parametrize("restarts", [False, True])
async def test_what_is_deleted_before_its_transaction_ends_never_counts(
    world: TransactionWorld, restarts: bool
) -> None:
    one = await producer(world)
    assert await one.commit_offset(7) == 0
    assert await one.commit_offset(8, partition=1) == 0
    if restarts:
        one.world = world = await world.reborn()
    assert await delete_offset(world) == 0
    assert await one.end() == 0
    await world.rests()
    assert await world.offset() == (-1, 0)
    assert await world.offset(1) == (8, 0)
    again = await world.reborn()
    assert (await again.offset(), await again.offset(1)) == ((-1, 0), (8, 0))


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_deleted_group_does_not_come_back_with_the_end_of_a_transaction(
    world: TransactionWorld, restarts: bool
) -> None:
    one = await producer(world)
    assert await one.commit_offset(7) == 0
    if restarts:
        one.world = world = await world.reborn()
    assert await delete_group(world) == 0
    one.world = world = await world.reborn()
    assert world.broker.groups.groups == {}
    assert await one.end() == 0
    await world.rests()
    assert world.broker.groups.groups == {}
    assert (await world.reborn()).broker.groups.groups == {}


async def test_a_deletion_counts_for_a_transactional_commit_under_way() -> None:
    """The log has the commit first and the deletion behind it."""
    world = await transaction_world(horolog_durability="fsync")
    one = await producer(world)
    assert await one.commit_offset(6, partition=1) == 0
    world.commit.request = partial(ManualCommit.request, world.commit)
    commit = asyncio.ensure_future(one.commit_offset(7))
    await world.rests()
    assert not commit.done()
    deletion = asyncio.ensure_future(delete_offset(world))
    await world.rests()
    del world.commit.request
    world.commit.sync()
    assert (await commit, await deletion) == (0, 0)
    assert await one.end() == 0
    await world.rests()
    assert await world.offset() == (-1, 0)
    assert await (await world.reborn()).offset() == (-1, 0)


async def ended_by_a_tool(world: TransactionWorld, one: Producer) -> int:
    """WriteTxnMarkers for the offsets of a producer; the code."""
    index = world.broker.groups.topic.index_of(GROUP)
    topic = write_txn_markers.WritableTxnMarkerTopic(
        name=CONSUMER_OFFSETS, partition_indexes=[index]
    )
    marker = write_txn_markers.WritableTxnMarker(
        producer_id=one.producer_id, producer_epoch=one.epoch, topics=[topic]
    )
    request = write_txn_markers.WriteTxnMarkersRequest(markers=[marker])
    answer = (await world.call(request, 1)).markers[0].topics[0].partitions[0]
    return int(answer.error_code)


async def test_a_tool_ends_no_transaction_of_offsets_that_are_being_read(
    world: TransactionWorld,
) -> None:
    """Who reads may miss the marker: the offsets would wait without end."""
    one = await patient(world)
    assert await one.commit_offset(5) == 0
    again = TransactionWorld(world.remains(), world.seed + 1, **world.settings)
    assert await ended_by_a_tool(again, one) == E.NOT_LEADER_OR_FOLLOWER
    await again.loaded()
    assert await again.offset(stable=True) == (-1, E.UNSTABLE_OFFSET_COMMIT)
    assert await ended_by_a_tool(again, one) == 0
    assert await again.offset(stable=True) == (-1, 0)


async def test_who_may_not_see_a_topic_does_not_hear_of_a_transaction_with_its_offsets(
    world: TransactionWorld,
) -> None:
    one = await patient(world)
    assert await one.commit_offset(5) == 0
    rights: Any = SimpleNamespace(
        granted={}, may=lambda _, name: name == GROUP, bits=lambda *_: 0,
        may_on_any=lambda _: True, denied=lambda *_: None,
    )  # fmt: skip
    world.rights = rights
    assert await world.offset(stable=True) == (-1, E.TOPIC_AUTHORIZATION_FAILED)
