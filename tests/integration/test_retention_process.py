"""A real broker with a second of retention: old records go while new ones come."""

import time
from pathlib import Path

from protocol.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from tests.support.clients.wire import WireClient
from tests.support.worlds.broker_process import start_broker

EARLIEST, LATEST = -2, -1
OFFSET_OUT_OF_RANGE = 1
SETTINGS = {
    "internal.segment.bytes": "2000",
    "retention.ms": "1000",
    "file.delete.delay.ms": "0",
}


def make_topic(client: WireClient) -> None:
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in SETTINGS.items()]
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)
    response = client.call(CreateTopicsRequest(topics=[topic]), 7)
    assert response.topics[0].error_code == 0


def produce(client: WireClient) -> int:
    now_ms = time.time_ns() // 1_000_000
    batch = build_batch([(now_ms, None, b"x" * 100) for _ in range(5)])
    data = PartitionProduceData(index=0, records=batch)
    topic = TopicProduceData(name="t", partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=9000, topic_data=[topic])
    partition = client.call(request, 9).responses[0].partition_responses[0]
    assert partition.error_code == 0
    return int(partition.base_offset)


def offset_at(client: WireClient, timestamp: int) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsTopic(name="t", partitions=[partition])
    response = client.call(ListOffsetsRequest(replica_id=-1, topics=[topic]), 5)
    return int(response.topics[0].partitions[0].offset)


def fetch_error(client: WireClient, offset: int) -> int:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic="t", partitions=[partition])
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic])
    return int(client.call(request, 11).responses[0].partitions[0].error_code)


def test_old_records_go_while_new_ones_come(tmp_path: Path) -> None:
    often = {"log.retention.check.interval.ms": "1000", "log.initial.task.delay.ms": "0"}
    with start_broker(tmp_path / "data", often) as broker:
        host, port = broker.bootstrap.split(":")
        with WireClient(host, int(port)) as client:
            make_topic(client)
            expected = 0
            until = time.monotonic() + 30
            while offset_at(client, EARLIEST) < 100:
                assert produce(client) == expected, "an offset was given twice or left out"
                expected += 5
                assert time.monotonic() < until, "nothing went"
                time.sleep(0.01)
            assert fetch_error(client, 0) == OFFSET_OUT_OF_RANGE
            while offset_at(client, EARLIEST) < expected:
                assert time.monotonic() < until, "the last ones stay"
                time.sleep(0.1)
            assert offset_at(client, LATEST) == expected
            assert produce(client) == expected
            assert fetch_error(client, expected) == 0
        directory = tmp_path / "data" / "t-0"
        while list(directory.glob("*.deleted")):
            assert time.monotonic() < until, "files stay"
            time.sleep(0.1)
        assert broker.stop() == 0
