"""Ends of partitions that other nodes lead: who is asked for what, and for how long that counts."""

from typing import Any

import pytest

from broker.fleet.peers.log_ends import PeerLogEnds
from broker.fleet.peers.peers import PeerSilent
from broker.groups.ends_elsewhere import refresh_ends
from broker.groups.lag import standings
from broker.partitions.leadership import NOBODY, Leadership
from protocol.apis.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.support.worlds.group_world import GroupWorld, group_world

HERE, TWO, THREE = 0, 2, 3


class Leaders:
    """Other nodes, which tell the ends that a test sets."""

    def __init__(self) -> None:
        self.ends: dict[int, int] = {}
        self.silent: set[int] = set()
        self.asked: list[tuple[int, list[int]]] = []
        self.now = 0.0

    async def ask(self, node_id: int, request: Any) -> ListOffsetsResponse:
        [topic] = request.topics
        indexes = [each.partition_index for each in topic.partitions]
        self.asked.append((node_id, indexes))
        if node_id in self.silent:
            raise PeerSilent("no answer")
        found = [
            ListOffsetsPartitionResponse(
                partition_index=index, error_code=0, offset=self.ends[index]
            )
            for index in indexes
        ]
        return ListOffsetsResponse(
            topics=[ListOffsetsTopicResponse(name=topic.name, partitions=found)]
        )


@pytest.fixture
async def world() -> GroupWorld:
    """A group has read four partitions, of which one is led here, and one by nobody."""
    made = await group_world()
    await made.make_topic("many", 4)
    await made.produce(b"0", b"1", b"2", topic="many")
    for index, leader in enumerate((HERE, TWO, THREE, NOBODY)):
        epoch = Leadership(leader, 5, is_here=leader == HERE)
        made.partition("many", index).led_by(epoch)
    assert made.commit_offsets(*(("many", index, 1) for index in range(4))) == [0] * 4
    return made


@pytest.fixture
def leaders() -> Leaders:
    made = Leaders()
    made.ends = {1: 11, 2: 22}
    return made


def lags(world: GroupWorld) -> dict[int, int]:
    groups, image = world.broker.groups.groups, world.broker.topics.image
    return {each.partition: each.records for each in standings(groups, image)}


async def refreshed(world: GroupWorld, ends: PeerLogEnds) -> dict[int, int]:
    groups = list(world.broker.groups.groups.values())
    await refresh_ends(groups, world.broker.topics.image, ends.of)
    return lags(world)


async def test_the_lag_is_known_of_all_that_somebody_leads(
    world: GroupWorld, leaders: Leaders
) -> None:
    ends = PeerLogEnds(leaders.ask, lambda: leaders.now)
    assert lags(world) == {0: 2}
    assert await refreshed(world, ends) == {0: 2, 1: 10, 2: 21}
    assert sorted(leaders.asked) == [(TWO, [1]), (THREE, [2])]


async def test_an_answer_counts_for_a_second_and_for_its_leader(
    world: GroupWorld, leaders: Leaders
) -> None:
    ends = PeerLogEnds(leaders.ask, lambda: leaders.now)
    await refreshed(world, ends)
    leaders.ends[1] = 12
    assert (await refreshed(world, ends))[1] == 10
    leaders.now = 1.5
    assert (await refreshed(world, ends))[1] == 11
    leaders.asked.clear()
    world.partition("many", 1).led_by(Leadership(THREE, 6, is_here=False))
    assert 1 not in lags(world), "the next leader has not said so"
    assert (await refreshed(world, ends))[1] == 11
    assert leaders.asked == [(THREE, [1])]


async def test_a_node_that_is_silent_has_no_ends(world: GroupWorld, leaders: Leaders) -> None:
    ends = PeerLogEnds(leaders.ask, lambda: leaders.now)
    await refreshed(world, ends)
    leaders.silent.add(TWO)
    leaders.now = 2.0
    assert await refreshed(world, ends) == {0: 2, 2: 21}
