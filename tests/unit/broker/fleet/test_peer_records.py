"""Records of partitions that other nodes lead: read by Fetch, and never taken for gone in error."""

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from broker.fleet.peers.peers import PeerSilent, PeerUnreached
from broker.fleet.peers.records import TRIES, PeerRecords, PeerSource
from broker.partitions.leadership import NOBODY
from protocol.apis.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from protocol.apis.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from protocol.errors import ErrorCode, KafkaError

LEADER, START, END = 2, 3, 9
TOPIC_ID = UUID(int=7)


class Leader:
    """Another node, and this one's way to it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.answers: list[Any] = []
        """To Fetch: bytes, a code or what is raised; then `records`."""
        self.partition: Any = SimpleNamespace(
            topic="t", index=1, log=SimpleNamespace(topic_id=TOPIC_ID, config="config"),
            leader_elsewhere=SimpleNamespace(node_id=LEADER),
        )  # fmt: skip
        self.records = PeerRecords(self.ask, asyncio.get_running_loop())

    async def ask(self, node_id: int, request: Any) -> Any:
        assert node_id == LEADER
        self.asked.append(request)
        if isinstance(request, ListOffsetsRequest):
            return _offsets(request)
        said = self.answers.pop(0) if self.answers else b"records"
        if isinstance(said, Exception):
            raise said
        code, found = (said, b"") if isinstance(said, ErrorCode) else (0, said)
        data = PartitionData(
            partition_index=1, error_code=code, high_watermark=END, records=memoryview(found)
        )
        topic = FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=[data])
        return FetchResponse(responses=[topic])

    async def read(self, offset: int = 5) -> bytes:
        return bytes(await asyncio.to_thread(self.source.read, offset, 1000))

    async def original(self, offset: int = 5) -> bytes:
        return bytes(await asyncio.to_thread(self.source.original, offset))

    @property
    def source(self) -> PeerSource:
        return self.records.source(self.partition)


def _offsets(request: ListOffsetsRequest) -> ListOffsetsResponse:
    [wanted] = request.topics[0].partitions
    offset = {-2: START, -1: END}[wanted.timestamp]
    found = ListOffsetsPartitionResponse(partition_index=1, error_code=0, offset=offset)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[found])])


async def test_the_leader_is_asked_for_all_records_and_does_not_wait() -> None:
    leader = Leader()
    assert await leader.read() == b"records"
    [request] = leader.asked
    assert isinstance(request, FetchRequest)
    assert (request.replica_id, request.isolation_level, request.session_epoch) == (-1, 0, -1)
    [topic] = request.topics
    assert (topic.topic, topic.topic_id) == ("t", TOPIC_ID)
    assert (topic.partitions[0].partition, topic.partitions[0].fetch_offset) == (1, 5)
    assert await leader.records.bounds(leader.partition) == (START, END)


async def test_bytes_that_the_leader_has_to_bring_first_are_waited_for() -> None:
    leader = Leader()
    leader.answers = [b"", b""]
    assert await leader.read() == b"records"
    leader.answers = [b""] * TRIES
    with pytest.raises(KafkaError) as refused:
        await leader.read()
    assert refused.value.code == ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (PeerSilent("node 2"), ErrorCode.LEADER_NOT_AVAILABLE),
        (PeerUnreached("node 2"), ErrorCode.LEADER_NOT_AVAILABLE),
    ],
)
async def test_what_is_not_known_is_not_taken_for_gone(said: Any, code: ErrorCode) -> None:
    leader = Leader()
    for read in (leader.read, leader.original):
        leader.answers = [said]
        with pytest.raises(KafkaError) as refused:
            await read()
        assert refused.value.code == code


@pytest.mark.parametrize("said", [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.CORRUPT_MESSAGE])
async def test_a_record_that_its_leader_does_not_have_is_gone(said: ErrorCode) -> None:
    leader = Leader()
    leader.answers = [said]
    assert await leader.original() == b""
    leader.answers = [said]
    with pytest.raises(KafkaError):
        await leader.read()


async def test_nothing_at_the_end_is_no_letter_that_is_passed_over() -> None:
    leader = Leader()
    leader.answers = [b"", b""]
    assert await leader.original(END) == b""
    with pytest.raises(KafkaError) as refused:
        await leader.read(END)
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_nobody_is_asked_while_nobody_leads() -> None:
    leader = Leader()
    for elsewhere in (None, SimpleNamespace(node_id=NOBODY)):
        leader.partition.leader_elsewhere = elsewhere
        with pytest.raises(KafkaError) as refused:
            await leader.records.bounds(leader.partition)
        assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert leader.asked == []
