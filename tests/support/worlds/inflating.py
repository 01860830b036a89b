"""Small batches that unpack to very much, as an attacker would send them, and how others fare."""

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.apis.metadata import MetadataRequest
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.batch import HEADER_BYTES, LENGTH_ENDS, seal
from protocol.records.builder import build_batch
from protocol.records.compression import Codec, deflate
from protocol.records.numbers import zigzag_bytes
from tests.support.clients.wire import WireClient

BIG_BYTES = 63 * 1024 * 1024
NOW_MS = 1_790_000_000_000


def big_value(codec: Codec, unpacked_bytes: int = BIG_BYTES) -> bytes:
    """A batch of one record, the value of which is zeros."""
    return bytes(
        build_batch([(NOW_MS, b"k", bytes(unpacked_bytes))], codec=codec, level=_level(codec))
    )


def many_headers(codec: Codec, headers: int) -> bytes:
    """A batch of one record with so many headers of two bytes each."""
    body = b"\0" * 3 + zigzag_bytes(1) + b"k" + zigzag_bytes(-1)
    body += zigzag_bytes(headers) + b"\0\x01" * headers
    packed = deflate(codec, zigzag_bytes(len(body)) + body, _level(codec))
    batch = build_batch([(NOW_MS, b"k", b"v")], codec=codec)
    batch[HEADER_BYTES:] = packed
    batch[8:12] = (len(batch) - LENGTH_ENDS).to_bytes(4, "big")
    seal(batch, 0, len(batch))
    return bytes(batch)


def _level(codec: Codec) -> int | None:
    return {Codec.ZSTD: 19, Codec.GZIP: 9}.get(codec)


def produce(topic: str, batches: dict[int, bytes]) -> ProduceRequest:
    """One request for many partitions."""
    parts = [PartitionProduceData(index=index, records=data) for index, data in batches.items()]
    return ProduceRequest(
        acks=1, timeout_ms=60_000, topic_data=[TopicProduceData(name=topic, partition_data=parts)]
    )


def look_up(topic: str, partitions: int, timestamp: int) -> ListOffsetsRequest:
    """A search by time in many partitions."""
    asked = [
        ListOffsetsPartition(partition_index=i, timestamp=timestamp) for i in range(partitions)
    ]
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)]
    )


def make_topic(client: WireClient, topic: str, partitions: int) -> None:
    """A topic with the broker's settings."""
    row = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    answer = client.call(CreateTopicsRequest(topics=[row], timeout_ms=20_000), 5)
    assert not answer.topics[0].error_code, answer


@dataclass
class Waits:
    """Waits of another client for each of its answers, in seconds."""

    seconds: list[float] = field(default_factory=list)

    @property
    def longest(self) -> float:
        return max(self.seconds)

    def __str__(self) -> str:
        ordered = sorted(self.seconds)
        p99 = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
        return (
            f"{len(ordered)} answers, median {statistics.median(ordered) * 1000:.1f} ms, "
            f"p99 {p99 * 1000:.1f} ms, longest {ordered[-1] * 1000:.1f} ms"
        )


@contextmanager
def bystander(connect: Callable[[], WireClient], topic: str) -> Iterator[Waits]:
    """Another client that asks and writes a little all the time."""
    waits, over = Waits(), threading.Event()

    def run() -> None:
        client = connect()
        records = bytes(build_batch([(NOW_MS, b"k", b"v")]))
        asked = (
            (MetadataRequest(topics=[]), 4),
            (produce(topic, {0: records}), 8),
            (look_up(topic, 1, NOW_MS), 5),
        )
        while not over.is_set():
            for request, version in asked:
                began = time.perf_counter()
                client.call(request, version)
                waits.seconds.append(time.perf_counter() - began)
            time.sleep(0.002)
        client.socket.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield waits
    finally:
        over.set()
        thread.join()
