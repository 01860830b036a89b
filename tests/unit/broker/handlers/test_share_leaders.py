"""Share groups where the leader of a partition changes: who is asked, what ends, what goes on."""

import pytest

from broker.partitions.leadership import Leadership
from broker.partitions.writer import PartitionWriter
from broker.runtime.deferred import refused
from broker.share.state.key import ShareKey
from protocol.errors import ErrorCode, KafkaError
from tests.support.fleet.hand_lease import HandLease
from tests.support.worlds.share_read_world import (
    ACCEPT,
    GROUP,
    LOCK_MS,
    Reader,
    ShareReadWorld,
    share_read_world,
)

THREE = (b"0", b"1", b"2")
HERE, THERE = 0, 2


@pytest.fixture
async def world() -> ShareReadWorld:
    return await share_read_world()


def lead(world: ShareReadWorld, node_id: int, epoch: int) -> None:
    partition = world.partition()
    partition.led_by(Leadership(node_id, epoch, is_here=node_id == HERE))
    if node_id != HERE:
        world.broker.share_reads.led_no_more(partition)


async def got(world: ShareReadWorld, member: str) -> tuple[Reader, list[tuple[int, int, int]]]:
    """A member, and what it acquires once the state was read."""
    reader = world.reader(member)
    found = await reader.got()
    if not found:
        await world.turn()
        found = await reader.got()
    return reader, found


async def test_who_asks_the_wrong_node_hears_of_the_leader(world: ShareReadWorld) -> None:
    await world.produce(*THREE)
    reader = world.reader()
    await reader.fetch()
    lead(world, THERE, 7)
    [answer] = (await reader.fetch()).responses[0].partitions
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (THERE, 7)
    assert not answer.acquired_records
    [answer] = (await reader.acknowledge((0, 2, ACCEPT))).responses[0].partitions
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader.leader_id == THERE


async def test_who_may_have_been_replaced_gives_out_nothing(world: ShareReadWorld) -> None:
    await world.produce(*THREE)
    lease = HandLease()
    world.partition().led_by(Leadership(HERE, 7, is_here=True, lease=lease))
    lease.is_held = False
    [answer] = (await world.reader().fetch()).responses[0].partitions
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    lease.is_held = True
    assert (await got(world, "m2"))[1] == [(0, 2, 1)]


async def test_the_next_leader_goes_on_from_what_was_answered(world: ShareReadWorld) -> None:
    await world.produce(*THREE)
    lead(world, HERE, 6)
    one, found = await got(world, "m1")
    assert found == [(0, 2, 1)]
    assert await one.code((0, 0, ACCEPT)) == 0
    lead(world, THERE, 7)
    assert world.broker.share_reads.partitions.count == 0
    lead(world, HERE, 8)
    assert (await got(world, "m2"))[1] == [(1, 2, 1)], "locks end with the leader"
    assert await one.code((1, 2, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
    state = world.state()
    assert state.leader_epoch == 8
    await world.pass_ms(LOCK_MS - 1)
    assert world.state() == state, "the lock of before frees nothing"


async def test_an_old_leader_changes_nothing(world: ShareReadWorld) -> None:
    await world.produce(*THREE)
    lead(world, HERE, 6)
    reader, found = await got(world, "m1")
    assert found == [(0, 2, 1)]
    key = ShareKey(GROUP, world.topic_id(), 0)
    await world.settled(world.broker.share_states.read(key, 7))
    assert await reader.code((0, 2, ACCEPT)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.state().finished in {-1, 0}


async def test_a_broker_that_was_taken_out_of_a_fleet_goes_on(world: ShareReadWorld) -> None:
    """Its log may have no record of the last leader's epoch, and nobody else can lead."""
    await world.produce(*THREE)
    key = ShareKey(GROUP, world.topic_id(), 0)
    await world.settled(world.broker.share_states.read(key, 57))
    reader, found = await got(world, "m1")
    assert found == [(0, 2, 1)]
    assert await reader.code((0, 2, ACCEPT)) == 0
    assert world.state().finished == 3


@pytest.mark.parametrize(
    ("fails", "heard"),
    [
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
async def test_an_acknowledgement_of_records_that_are_not_committed_may_be_sent_again(
    world: ShareReadWorld, monkeypatch: pytest.MonkeyPatch, fails: ErrorCode, heard: ErrorCode
) -> None:
    """An unknown error would be the end of a member, and of what others have in hand."""
    await world.produce(*THREE)
    one, found = await got(world, "m1")
    assert found == [(0, 2, 1)]
    monkeypatch.setattr(PartitionWriter, "durable_up_to", lambda *_: refused(KafkaError(fails)))
    assert await one.code((0, 1, ACCEPT)) == heard
    monkeypatch.undo()
    assert await one.code((0, 2, ACCEPT)) == 0
    assert (await got(world, "m2"))[1] == []
