"""A file of leader epochs that cannot be read is the fault of one partition, not of a connection.

After a clean stop it is read when an epoch is first asked for.
"""

from typing import Any

import pytest

from protocol.apis.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from protocol.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.errors import ErrorCode
from protocol.records.compression import Codec
from storage.errors import DiskError
from tests.support.worlds.handler_world import NODE_ID, World, batch
from tests.unit.broker.handlers.test_fetch import fetch, partitions_of

SICK = ErrorCode.KAFKA_STORAGE_ERROR
NAMES = ("good", "sick")


class Sick:
    """Topics `good` and `sick` after a clean stop; files of the second cannot be opened."""

    async def begin(self) -> None:
        before = World()
        for name in NAMES:
            await before.make_topic(name)
            await before.produce(b"a", topic=name)
        before.broker.logs.close()
        self.is_sick = True
        self.world = World(before.fs)
        self._read = self.world.fs.read_text
        self.world.fs.read_text = self._fails  # type: ignore[method-assign]

    def _fails(self, path: str) -> str:
        if self.is_sick and path.endswith("sick-0/leader-epoch-checkpoint"):
            raise DiskError(path, "open", "Too many open files", 24)
        return self._read(path)


@pytest.fixture
async def sick() -> Sick:
    made = Sick()
    await made.begin()
    return made


async def test_topics_are_described_beside_it(sick: Sick) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=each) for each in NAMES])
    good, bad = (await sick.world.call(request, 9)).topics
    assert (good.error_code, good.partitions[0].error_code) == (0, 0)
    assert good.partitions[0].leader_epoch == 0
    assert (bad.error_code, bad.partitions[0].error_code) == (0, SICK)
    assert (bad.partitions[0].leader_id, bad.partitions[0].leader_epoch) == (NODE_ID, -1)


async def test_a_page_of_topics_has_both(sick: Sick) -> None:
    asked = [TopicRequest(name=each) for each in NAMES]
    answer = await sick.world.call(DescribeTopicPartitionsRequest(topics=asked), 0)
    parts = [each.partitions[0] for each in answer.topics]
    assert [(each.error_code, each.leader_epoch) for each in parts] == [(0, 0), (SICK, -1)]


@pytest.mark.parametrize(
    "records",
    [batch(b"b"), batch(b"b", codec=Codec.GZIP), batch(b"0" * 4_000_000, codec=Codec.ZSTD)],
    ids=["plain", "packed", "on a lane"],
)
async def test_batches_beside_one_for_it_are_answered(sick: Sick, records: bytearray) -> None:
    topics = [
        TopicProduceData(
            name=name, partition_data=[PartitionProduceData(index=0, records=bytearray(records))]
        )
        for name in NAMES
    ]
    answer = await sick.world.call(ProduceRequest(acks=1, topic_data=topics), 9)
    codes = [each.partition_responses[0].error_code for each in answer.responses]
    assert codes == [0, SICK]


async def test_questions_of_offsets_have_a_code(sick: Sick) -> None:
    def asked(timestamp: int) -> Any:
        part = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=-1)
        topics = [ListOffsetsTopic(name=each, partitions=[part]) for each in NAMES]
        return ListOffsetsRequest(replica_id=-1, topics=topics)

    for timestamp, offset in ((-1, 1), (-2, 0), (-4, 0)):
        answer = await sick.world.call(asked(timestamp), 8)
        parts = [each.partitions[0] for each in answer.topics]
        assert [(each.error_code, each.offset) for each in parts] == [(0, offset), (SICK, -1)]


async def test_the_end_of_an_epoch_has_a_code(sick: Sick) -> None:
    part = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    topics = [OffsetForLeaderTopic(topic=each, partitions=[part]) for each in NAMES]
    answer = await sick.world.call(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics), 4)
    parts = [each.partitions[0] for each in answer.topics]
    assert [(each.error_code, each.end_offset) for each in parts] == [(0, 1), (SICK, -1)]


async def test_it_is_served_once_the_file_can_be_read(sick: Sick) -> None:
    records = fetch(0, topic="sick", epoch=0)
    assert partitions_of(await sick.world.call(records, 11))[0].error_code == SICK
    assert (await sick.world.produce(b"b", topic="sick")).error_code == SICK
    sick.is_sick = False
    assert (await sick.world.produce(b"b", topic="sick")).base_offset == 1
    assert partitions_of(await sick.world.call(records, 11))[0].error_code == 0
