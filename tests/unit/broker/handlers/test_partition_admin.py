"""DeleteRecords, OffsetForLeaderEpoch, DescribeLogDirs, DescribeProducers, InitProducerId."""

from typing import Any

import pytest

from protocol.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.apis.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from protocol.apis.describe_producers import DescribeProducersRequest, TopicRequest
from protocol.apis.init_producer_id import InitProducerIdRequest
from protocol.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.errors import ErrorCode
from tests.support.worlds.handler_world import World


async def delete(
    world: World, offset: int, *, topic: str = "t", index: int = 0, version: int = 2
) -> tuple[int, int]:
    """Error code and low watermark."""
    partition = DeleteRecordsPartition(partition_index=index, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=1000
    )
    answer = (await world.call(request, version)).topics[0].partitions[0]
    return answer.error_code, answer.low_watermark


async def filled(world: World, **configs: str) -> None:
    """Offsets 0..5 in three batches."""
    await world.make_topic(**configs)
    for _ in range(3):
        await world.produce(b"a", b"b", key=b"k")


async def test_of_a_partition_that_is_named_many_times_the_last_offset_counts(
    world: World,
) -> None:
    """As with Kafka; it has one answer, and the audit one line."""
    await filled(world)
    named = [DeleteRecordsPartition(partition_index=0, offset=at) for at in (5, 3, 4)]
    topics = [DeleteRecordsTopic(name="t", partitions=named[:2])]
    topics.append(DeleteRecordsTopic(name="t", partitions=named[2:]))
    answer = await world.call(DeleteRecordsRequest(topics=topics, timeout_ms=1000), 2)
    ((found,),) = [each.partitions for each in answer.topics]
    assert (found.error_code, found.low_watermark) == (0, 4)


@pytest.mark.parametrize("version", range(3))
async def test_records_before_an_offset_are_gone(world: World, version: int) -> None:
    await filled(world)
    assert await delete(world, 3, version=version) == (0, 3)
    assert world.partition().log.snapshot.log_start_offset == 3


async def test_the_start_never_moves_back(world: World) -> None:
    await filled(world)
    await delete(world, 4)
    assert await delete(world, 2) == (0, 4)
    assert await delete(world, 4) == (0, 4)


async def test_minus_one_means_the_high_watermark(world: World) -> None:
    await filled(world)
    assert await delete(world, -1) == (0, 6)
    assert (await world.produce(b"next")).base_offset == 6


async def test_the_new_start_outlives_the_process(world: World) -> None:
    await filled(world)
    await delete(world, 3)
    assert world.restarted().partition().log.snapshot.log_start_offset == 3


async def test_what_deletion_of_records_is_refused(world: World) -> None:
    await filled(world)
    out_of_range = (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert await delete(world, 7) == out_of_range
    assert await delete(world, -2) == out_of_range
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert await delete(world, 0, topic="nope") == unknown
    assert await delete(world, 0, index=1) == unknown


@pytest.mark.parametrize(
    ("policy", "code"),
    [("compact", ErrorCode.POLICY_VIOLATION), ("compact,delete", 0), ("delete", 0)],
)
async def test_a_topic_that_is_only_compacted_keeps_its_records(
    world: World, policy: str, code: int
) -> None:
    await filled(world, cleanup_policy=policy)
    assert (await delete(world, 2))[0] == code


# -- OffsetForLeaderEpoch


@pytest.mark.parametrize("version", range(2, 5))
async def test_the_present_epoch_ends_at_the_end(world: World, version: int) -> None:
    await filled(world)
    epoch = world.partition().log.leader_epoch
    answer = await epoch_end(world, epoch, version=version)
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (0, epoch, 6)


async def test_epochs_that_nobody_knows(world: World) -> None:
    await filled(world)
    epoch = world.partition().log.leader_epoch
    future = await epoch_end(world, epoch + 5)
    assert (future.error_code, future.leader_epoch, future.end_offset) == (0, -1, -1)
    fenced = await epoch_end(world, epoch, current=epoch + 1)
    assert fenced.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    unknown = await epoch_end(world, epoch, topic="nope")
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_epochs_that_ended_before_the_log_start_end_there(world: World) -> None:
    await filled(world)
    epochs = world.partition().log.epochs
    for epoch, start in ((2, 2), (3, 4)):
        epochs.assign(epoch, start)
    epochs.save()
    world = world.restarted()
    assert world.partition().epoch_end_offset(0) == (0, 2)

    await delete(world, 3)
    partition = world.partition()
    assert partition.earliest_epoch == 2
    assert partition.epoch_end_offset(0) == (0, 3)
    assert partition.epoch_end_offset(1) == (1, 3), "as by Kafka, which has forgotten epoch 0"
    assert partition.epoch_end_offset(2) == (2, 4)
    assert partition.epoch_end_offset(3) == (3, 6)


async def epoch_end(
    world: World, epoch: int, *, current: int = -1, topic: str = "t", version: int = 4
) -> Any:
    query = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[query])]
    )
    return (await world.call(request, version)).topics[0].partitions[0]


# -- DescribeLogDirs


@pytest.mark.parametrize("version", range(1, 6))
async def test_sizes_of_all_partitions(world: World, version: int) -> None:
    await filled(world)
    await world.make_topic("empty", partitions=2)
    (directory,) = (await world.call(DescribeLogDirsRequest(topics=None), version)).results
    assert (directory.error_code, directory.log_dir) == (0, "/data")
    sizes = {
        (topic.name, each.partition_index): each.partition_size
        for topic in directory.topics
        for each in topic.partitions
    }
    assert sizes["empty", 0] == sizes["empty", 1] == 0
    assert sizes["t", 0] == world.partition().log.snapshot.size_bytes > 0


async def test_only_the_partitions_asked_for_and_only_those_that_exist(world: World) -> None:
    await world.make_topic("a", partitions=3)
    wanted = [
        DescribableLogDirTopic(topic="a", partitions=[2, 9]),
        DescribableLogDirTopic(topic="nope", partitions=[0]),
    ]
    (directory,) = (await world.call(DescribeLogDirsRequest(topics=wanted), 4)).results
    told = [(t.name, [p.partition_index for p in t.partitions]) for t in directory.topics]
    assert told == [("a", [2])]


# -- DescribeProducers, InitProducerId


async def test_producers_that_wrote_are_described(world: World) -> None:
    await world.make_topic()
    await world.produce(b"a", b"b", producer_id=7, producer_epoch=3, base_sequence=0)
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0, 1])])
    known, unknown = (await world.call(request, 0)).topics[0].partitions
    (producer,) = known.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (7, 3, 1)
    assert producer.current_txn_start_offset == -1
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", range(7))
async def test_every_idempotent_producer_gets_its_own_id(world: World, version: int) -> None:
    answers = [await world.call(InitProducerIdRequest(), version) for _ in range(3)]
    assert {each.error_code for each in answers} == {0}
    assert len({each.producer_id for each in answers}) == 3
    assert {each.producer_epoch for each in answers} == {0}


async def test_ids_are_not_given_out_again_after_a_restart(world: World) -> None:
    first = await world.call(InitProducerIdRequest(), 4)
    second = await world.restarted().call(InitProducerIdRequest(), 4)
    assert first.producer_id != second.producer_id


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"transactional_id": "x"}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_id": 5, "producer_epoch": 1}, 0),
    ],
)
async def test_what_producers_are_refused(world: World, how: dict[str, Any], code: int) -> None:
    answer = await world.call(InitProducerIdRequest(**how), 4)
    assert answer.error_code == code
    if code:
        assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


async def test_no_id_without_a_disk(world: World) -> None:
    world.fs.inject("write", path="horolog-producer-ids")
    answer = await world.call(InitProducerIdRequest(), 4)
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
