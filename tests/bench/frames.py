"""Requests made before the clock starts: produce, fetch and by-time look-ups of one partition."""

import random
import struct
import time
from collections.abc import Iterator

from protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.batch import set_max_timestamp
from protocol.records.builder import build_batch
from tests.bench.wire import frame

PRODUCE_VERSION = 11
FETCH_VERSION = 12
LIST_OFFSETS_VERSION = 7
INT64 = struct.Struct(">q")
SENTINEL = 0x7A7A_7A7A_7A7A_7A7A  # stands where a number is patched in later
BASE_TIMESTAMP_AT = 27


def payload(size_bytes: int, seed: int = 1) -> bytes:
    """Bytes that do not compress, the same in every run."""
    return random.Random(seed).randbytes(size_bytes)


def batch_of(record_bytes: int, count: int, time_ms: int | None = None) -> bytes:
    """A batch of `count` keyless records with values of `record_bytes`, of now or `time_ms`."""
    at = time.time_ns() // 1_000_000 if time_ms is None else time_ms
    values = [payload(record_bytes, seed) for seed in range(min(count, 64))]
    return bytes(build_batch((at, None, values[index % 64]) for index in range(count)))


def batches_over_time(
    record_bytes: int, count: int, first_ms: int, step_ms: int
) -> Iterator[bytes]:
    """Endless batches of one content, each `step_ms` later than the one before."""
    batch = bytearray(batch_of(record_bytes, count, first_ms))
    at = first_ms
    while True:
        INT64.pack_into(batch, BASE_TIMESTAMP_AT, at)
        set_max_timestamp(memoryview(batch), 0, len(batch), at)
        yield bytes(batch)
        at += step_ms


def produce(topic: str, batch: bytes, *, acks: int, partition: int = 0) -> bytes:
    """One Produce request with one batch."""
    return produce_many(topic, batch, acks=acks, partitions=[partition])


def produce_many(topic: str, batch: bytes, *, acks: int, partitions: list[int]) -> bytes:
    """One Produce request that appends the same batch to several partitions."""
    data = [PartitionProduceData(index=index, records=batch) for index in partitions]
    message = ProduceRequest(
        transactional_id=None,
        acks=acks,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=data)],
    )
    return frame("Produce", PRODUCE_VERSION, message)


class Template:
    """A frame with one 64-bit number to be filled in."""

    def __init__(self, request: bytes) -> None:
        mark = INT64.pack(SENTINEL)
        assert request.count(mark) == 1
        self._frame, self._position = bytearray(request), request.index(mark)

    def with_number(self, number: int) -> bytes:
        INT64.pack_into(self._frame, self._position, number)
        return bytes(self._frame)


def fetch_from(topic: str, max_bytes: int) -> Template:
    """Fetch of partition 0 outside a session; the number is the offset."""
    partition = FetchPartition(partition=0, fetch_offset=SENTINEL, partition_max_bytes=max_bytes)
    message = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )
    return Template(frame("Fetch", FETCH_VERSION, message))


def offset_at(topic: str) -> Template:
    """ListOffsets of partition 0; the number is the time (ms)."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=SENTINEL)
    message = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[partition])])
    return Template(frame("ListOffsets", LIST_OFFSETS_VERSION, message))
