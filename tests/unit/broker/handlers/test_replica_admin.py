"""ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments: alone, and in a fleet."""

from typing import Any

import pytest

from broker.partitions.leadership import NOBODY, Leadership
from broker.runtime.endpoint import Endpoint
from protocol.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.apis.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from protocol.errors import ErrorCode
from tests.support.worlds.handler_world import World

PREFERRED, UNCLEAN = 0, 1


async def elect(world: World, index: int, *, topic: str = "t", kind: int = PREFERRED) -> Any:
    named = [TopicPartitions(topic=topic, partitions=[index])]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=named, timeout_ms=1000)
    response = await world.call(request, 2)
    assert response.error_code == 0
    return response.replica_election_results[0].partition_result[0].error_code


async def reassign(world: World, replicas: list[int] | None, index: int = 0) -> Any:
    wanted = ReassignablePartition(partition_index=index, replicas=replicas)
    topics = [ReassignableTopic(name="t", partitions=[wanted])]
    request = AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=1000)
    return (await world.call(request, 1)).responses[0].partitions[0]


@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN])
async def test_a_leader_that_leads_needs_no_election(world: World, kind: int) -> None:
    await world.make_topic()
    assert await elect(world, 0, kind=kind) == ErrorCode.ELECTION_NOT_NEEDED


async def test_there_is_no_election_where_there_is_no_partition(world: World) -> None:
    await world.make_topic()
    assert await elect(world, 7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await elect(world, 0, topic="nowhere") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", range(3))
async def test_electing_everywhere_changes_nothing(world: World, version: int) -> None:
    await world.make_topic(partitions=3)
    response = await world.call(ElectLeadersRequest(topic_partitions=None), version)
    assert (response.error_code, response.replica_election_results) == (0, [])


async def test_an_unknown_kind_of_election_is_refused(world: World) -> None:
    response = await world.call(ElectLeadersRequest(election_type=2, topic_partitions=None), 2)
    assert response.error_code == ErrorCode.INVALID_REQUEST


async def test_a_replica_may_stay_where_it_is(world: World) -> None:
    await world.make_topic()
    assert (await reassign(world, [1])).error_code == 0


@pytest.mark.parametrize(
    ("replicas", "code"),
    [
        ([2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
async def test_it_can_go_nowhere_else(
    world: World, replicas: list[int] | None, code: ErrorCode
) -> None:
    await world.make_topic()
    answer = await reassign(world, replicas)
    assert answer.error_code == code
    assert answer.error_message


async def test_a_partition_that_is_not_there_cannot_be_moved(world: World) -> None:
    await world.make_topic()
    assert (await reassign(world, [1], 3)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_nothing_is_ever_being_moved(world: World) -> None:
    await world.make_topic()
    await reassign(world, [1])
    named = [ListPartitionReassignmentsTopics(name="t", partition_indexes=[0])]
    for topics in (None, named):
        request = ListPartitionReassignmentsRequest(topics=topics, timeout_ms=1000)
        response = await world.call(request, 0)
        assert (response.error_code, response.topics) == (0, [])


def led_by(world: World, node_id: int) -> None:
    world.partition().led_by(Leadership(node_id, 3, is_here=False))
    world.broker.endpoints.others = {2: Endpoint("b", 9092), 3: Endpoint("c", 9092)}


async def test_whoever_leads_in_a_fleet_needs_no_election(world: World) -> None:
    await world.make_topic()
    led_by(world, 2)
    assert await elect(world, 0) == ErrorCode.ELECTION_NOT_NEEDED
    led_by(world, NOBODY)
    assert await elect(world, 0) == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


async def test_a_replica_of_another_node_of_a_fleet_stays_there(world: World) -> None:
    await world.make_topic()
    led_by(world, 2)
    assert (await reassign(world, [2])).error_code == 0
    for replicas in ([1], [3], [9], [2, 3]):
        refused = await reassign(world, replicas)
        assert refused.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "lead whole shards" in (await reassign(world, [3])).error_message
    assert "no such broker" in (await reassign(world, [9])).error_message
