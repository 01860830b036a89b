"""Records of partitions that other nodes of the fleet lead, by Fetch, and their bounds, by
ListOffsets.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from broker.fleet.peers.peers import PeerSilent, PeerUnreached
from broker.partitions.leadership import NOBODY
from broker.partitions.partition import Partition
from config.topic import TopicConfig
from protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.wire import ZERO_UUID

EARLIEST, LATEST = -2, -1
ORIGINAL_BYTES = 256 * 1024
"""Of one look-up: the next records that are looked up are mostly beside it."""
TRIES = 10
"""Each waits at the leader, as long as `remote.fetch.max.wait.ms`, for bytes from the store."""
ANSWER_SECONDS = 20.0
"""Beyond what a request to a node may take."""
_GONE = {ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.CORRUPT_MESSAGE}


class PeerRecords:
    """Asks leaders. Used from the event loop, but for what `source` gives."""

    def __init__(
        self, ask: Callable[[int, Any], Awaitable[Any]], loop: asyncio.AbstractEventLoop
    ) -> None:
        """Nobody was asked."""
        self._ask = ask
        self._loop = loop

    async def bounds(self, partition: Partition) -> tuple[int, int]:
        """Log start and high watermark. KafkaError."""
        return await self._offset(partition, EARLIEST), await self._offset(partition, LATEST)

    async def fetch(self, partition: Partition, offset: int, max_bytes: int) -> memoryview:
        """Whole batches from the one with this offset on, at least one; nothing at the end.
        KafkaError, also while the leader waits for its store.
        """
        for _ in range(TRIES):
            answer = await self._answer(partition, _fetch(partition, offset, max_bytes))
            _check(answer.error_code, partition)
            [data] = answer.responses[0].partitions
            _check(data.error_code, partition)
            if data.records or offset >= data.high_watermark:
                return memoryview(data.records or b"")
        text = f"the leader of {partition} does not give what it has at {offset}"
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, text)

    def source(self, partition: Partition) -> "PeerSource":
        """The records, for threads that may wait."""
        return PeerSource(self, self._loop, partition)

    async def _offset(self, partition: Partition, timestamp: int) -> int:
        wanted = ListOffsetsPartition(partition_index=partition.index, timestamp=timestamp)
        topic = ListOffsetsTopic(name=partition.topic, partitions=[wanted])
        asked = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[topic])
        answer = await self._answer(partition, asked)
        [found] = answer.topics[0].partitions
        _check(found.error_code, partition)
        return int(found.offset)

    async def _answer(self, partition: Partition, request: Any) -> Any:
        elsewhere = partition.leader_elsewhere
        if elsewhere is None or elsewhere.node_id == NOBODY:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition} is moving")
        try:
            return await self._ask(elsewhere.node_id, request)
        except (PeerUnreached, PeerSilent) as error:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, str(error)) from error


class PeerSource:
    """Records of one partition. Blocks: used from a thread that may wait for another node."""

    start = 0
    """Its leader knows: it answers what is below it with OFFSET_OUT_OF_RANGE."""

    def __init__(
        self, records: PeerRecords, loop: asyncio.AbstractEventLoop, partition: Partition
    ) -> None:
        """Nothing is read."""
        self._records = records
        self._loop = loop
        self._partition = partition

    @property
    def config(self) -> TopicConfig:
        """Settings of its topic, which are the fleet's."""
        return self._partition.log.config

    def read(self, offset: int, max_bytes: int) -> memoryview:
        """As `PeerRecords.fetch`, of what is there: else KafkaError."""
        found = self._fetched(offset, max_bytes)
        if not found:
            text = f"the leader of {self._partition} has nothing at {offset}"
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
        return found

    def original(self, offset: int) -> memoryview:
        """As `read`; nothing where the record is gone or damaged, as its leader says."""
        try:
            return self._fetched(offset, ORIGINAL_BYTES)
        except KafkaError as error:
            if error.code not in _GONE:
                raise
            return memoryview(b"")

    def _fetched(self, offset: int, max_bytes: int) -> memoryview:
        work = self._records.fetch(self._partition, offset, max_bytes)
        asked = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return asked.result(ANSWER_SECONDS)
        except TimeoutError as error:
            asked.cancel()
            text = f"no answer about {self._partition} in {ANSWER_SECONDS:g} s"
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, text) from error


def _fetch(partition: Partition, offset: int, max_bytes: int) -> FetchRequest:
    wanted = FetchPartition(
        partition=partition.index, fetch_offset=offset, partition_max_bytes=max_bytes
    )
    topic = FetchTopic(
        topic=partition.topic,
        topic_id=partition.log.topic_id or ZERO_UUID,
        partitions=[wanted],
    )
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, topics=[topic])


def _check(number: int, partition: Partition) -> None:
    if number:
        code = ErrorCode(number) if number in set(ErrorCode) else ErrorCode.UNKNOWN_SERVER_ERROR
        raise KafkaError(code, f"the leader of {partition} answers {code.name}")
