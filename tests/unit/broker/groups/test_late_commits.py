"""Commits of a fleet that take too long: members hear what they send again after."""

import pytest

from protocol.errors import ErrorCode as E
from protocol.errors import KafkaError
from tests.support.worlds.group_world import INITIAL_DELAY_MS, GroupWorld, group_world
from tests.unit.broker.groups.consumer.test_consumer_groups import ask


@pytest.fixture
async def world() -> GroupWorld:
    return await group_world(horolog_durability="fsync")


def too_late(world: GroupWorld) -> None:
    """As `FleetCommit` answers after horolog.fleet.commit.timeout.ms."""
    requested, world.commit.requested = world.commit.requested, []
    assert requested
    for _, _, done in requested:
        done(KafkaError(E.REQUEST_TIMED_OUT))


async def test_a_member_that_waits_for_its_assignment_looks_for_the_coordinator(
    world: GroupWorld,
) -> None:
    """REQUEST_TIMED_OUT would end it: Java's consumer throws it out of poll()."""
    member = world.member()
    join = member.join()
    world.pass_ms(INITIAL_DELAY_MS)
    member.took(join)
    sync = member.sync({member.member_id: b"part"})
    too_late(world)
    assert sync.answer.error_code == E.NOT_COORDINATOR
    assert member.heartbeat() == E.REBALANCE_IN_PROGRESS


async def test_so_does_a_member_by_the_next_protocol(world: GroupWorld) -> None:
    asked = ask(world, "m", 0)
    too_late(world)
    assert asked.answer.error_code == E.NOT_COORDINATOR
