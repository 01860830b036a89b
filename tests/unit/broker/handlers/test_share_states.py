"""Requests 83-87 and FindCoordinator of share partitions, answered as by Kafka 4.3."""

from typing import Any
from uuid import UUID

import pytest

from protocol.apis import find_coordinator as find
from protocol.apis import initialize_share_group_state as initialize
from protocol.apis import read_share_group_state as read
from protocol.apis import read_share_group_state_summary as summary
from protocol.apis import write_share_group_state as write
from protocol.errors import ErrorCode
from tests.support.worlds.transaction_world import TransactionWorld

OWNER = "g1:yETHvHfKRgOQhdusmy-Ofg:0"


@pytest.fixture
async def world() -> TransactionWorld:
    made = TransactionWorld(share_coordinator_state_topic_num_partitions="2")
    await made.make_topic(partitions=2)
    return made


def topic_id(world: TransactionWorld) -> UUID:
    found: UUID = world.broker.topics.image.topics["t"].topic_id
    return found


async def begun(world: TransactionWorld, *partitions: int, group: str = "g", epoch: int = 1) -> Any:
    topics = [
        initialize.InitializeShareGroupStateTopic(
            topic_id=topic_id(world),
            partitions=[
                initialize.InitializeShareGroupStatePartition(
                    partition=each, state_epoch=epoch, start_offset=-1
                )
                for each in partitions
            ],
        )
    ]
    request = initialize.InitializeShareGroupStateRequest(group_id=group, topics=topics)
    return (await world.call(request, 0)).results


def change(world: TransactionWorld, **fields: Any) -> write.WriteShareGroupStateRequest:
    partition = write.WriteShareGroupStatePartition(partition=0, **fields)
    topic = write.WriteShareGroupStateTopic(topic_id=topic_id(world), partitions=[partition])
    return write.WriteShareGroupStateRequest(group_id="g", topics=[topic])


async def told(world: TransactionWorld, leader_epoch: int = 0) -> Any:
    partition = read.ReadShareGroupStatePartition(partition=0, leader_epoch=leader_epoch)
    topic = read.ReadShareGroupStateTopic(topic_id=topic_id(world), partitions=[partition])
    request = read.ReadShareGroupStateRequest(group_id="g", topics=[topic])
    return (await world.call(request, 0)).results[0].partitions[0]


async def summed_up(world: TransactionWorld, version: int) -> Any:
    partition = summary.ReadShareGroupStateSummaryPartition(partition=0)
    topic = summary.ReadShareGroupStateSummaryTopic(
        topic_id=topic_id(world), partitions=[partition]
    )
    request = summary.ReadShareGroupStateSummaryRequest(group_id="g", topics=[topic])
    return (await world.call(request, version)).results[0].partitions[0]


async def test_each_share_partition_has_a_result_of_its_own(world: TransactionWorld) -> None:
    (topic,) = await begun(world, 1, 5, 0)
    assert topic.topic_id == topic_id(world)
    assert [(each.partition, each.error_code) for each in topic.partitions] == [
        (1, 0), (5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (0, 0),
    ]  # fmt: skip
    (refused,) = [each for each in topic.partitions if each.error_code]
    assert refused.error_message == "This server does not host this topic-partition."
    assert topic.partitions[0].error_message is None


async def test_a_change_is_read_back(world: TransactionWorld) -> None:
    await begun(world, 0, epoch=3)
    batches = [
        read.StateBatch(first_offset=4, last_offset=7, delivery_state=0, delivery_count=1),
        read.StateBatch(first_offset=5, last_offset=5, delivery_state=2, delivery_count=1),
    ]
    asked = change(
        world, state_epoch=3, start_offset=4, delivery_complete_count=1, state_batches=batches
    )
    answer = (await world.call(asked, 1)).results[0].partitions[0]
    assert (answer.error_code, answer.error_message) == (0, None)
    found = await told(world)
    assert (found.error_code, found.state_epoch, found.start_offset) == (0, 3, 4)
    assert [
        (each.first_offset, each.last_offset, each.delivery_state) for each in found.state_batches
    ] == [(4, 4, 0), (5, 5, 2), (6, 7, 0)]
    newest, old = await summed_up(world, 1), await summed_up(world, 0)
    assert (newest.start_offset, newest.delivery_complete_count) == (4, 1)
    assert (old.start_offset, old.delivery_complete_count) == (4, -1)


async def test_fenced_epochs_have_their_codes(world: TransactionWorld) -> None:
    await begun(world, 0, epoch=3)
    await told(world, leader_epoch=6)
    assert (await told(world, 5)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (await begun(world, 0, epoch=2))[0].partitions[0].error_code == 124
    for fields, code in (
        ({"leader_epoch": 5, "state_epoch": 3}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"leader_epoch": 6, "state_epoch": 2}, ErrorCode.FENCED_STATE_EPOCH),
    ):
        answer = (await world.call(change(world, start_offset=1, **fields), 1)).results[0]
        assert answer.partitions[0].error_code == code


async def test_batches_that_go_back_are_refused(world: TransactionWorld) -> None:
    await begun(world, 0)
    batch = read.StateBatch(first_offset=4, last_offset=3)
    answer = (await world.call(change(world, state_epoch=1, state_batches=[batch]), 1)).results[0]
    assert answer.partitions[0].error_code == ErrorCode.INVALID_REQUEST


async def test_requests_that_name_nothing_are_answered_with_nothing(
    world: TransactionWorld,
) -> None:
    assert await begun(world, 0, group="") == []
    assert await begun(world) == []


async def found(world: TransactionWorld, key: str, version: int = 6) -> Any:
    request = find.FindCoordinatorRequest(key=key, key_type=2, coordinator_keys=[key])
    answer = await world.call(request, version)
    return answer.coordinators[0] if version >= 4 else answer


async def test_this_node_is_the_coordinator_of_share_partitions(world: TransactionWorld) -> None:
    assert (await found(world, OWNER)).error_code == 0
    assert len(world.broker.share_states.topic.partitions) == 2, "made before it is needed"


@pytest.mark.parametrize("version", [1, 3, 4, 5])
async def test_older_clients_have_no_share_coordinator(
    world: TransactionWorld, version: int
) -> None:
    assert (await found(world, OWNER, version)).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("key", ["", "g1", f"{OWNER}:1", "g1:x:0", OWNER[:-1] + "x"])
async def test_other_keys_have_no_share_coordinator(world: TransactionWorld, key: str) -> None:
    assert (await found(world, key)).error_code == ErrorCode.INVALID_REQUEST
