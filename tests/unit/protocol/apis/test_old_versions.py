"""Produce 0-2, Fetch 0-3 and ListOffsets 0 byte for byte; kafka-python is the second opinion.

Kafka 4 dropped these versions and kio with it. kafka-python still has them, from Kafka's own files.
"""

import warnings
from typing import Any

import pytest

from protocol.apis import fetch, list_offsets, produce
from protocol.codec import decode, encode_bytes

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol import consumer, producer

SET = b"any records"


def same(ours: Any, theirs: Any, version: int) -> None:
    """Both write the same bytes, and we read ours back."""
    data = encode_bytes(ours, version)
    assert data.hex() == bytes(theirs.encode(version=version)).hex()
    assert decode(type(ours), version, memoryview(data)) == ours


@pytest.mark.parametrize("version", range(3))
def test_produce(version: int) -> None:
    topic = producer.ProduceRequest.TopicProduceData
    theirs = producer.ProduceRequest(
        version=version, acks=-1, timeout_ms=1500,
        topic_data=[topic(name="t", partition_data=[
            topic.PartitionProduceData(index=3, records=SET)])],
    )  # fmt: skip
    same(
        produce.ProduceRequest(
            acks=-1,
            timeout_ms=1500,
            topic_data=[
                produce.TopicProduceData(
                    name="t",
                    partition_data=[produce.PartitionProduceData(index=3, records=SET)],
                )
            ],
        ),
        theirs,
        version,
    )


@pytest.mark.parametrize("version", range(3))
def test_the_answer_to_produce(version: int) -> None:
    topic = producer.ProduceResponse.TopicProduceResponse
    stamp = 5000 if version >= 2 else -1
    throttle = 7 if version >= 1 else 0
    theirs = producer.ProduceResponse(
        version=version, throttle_time_ms=throttle,
        responses=[topic(name="t", partition_responses=[
            topic.PartitionProduceResponse(
                index=3, error_code=6, base_offset=77, log_append_time_ms=stamp)])],
    )  # fmt: skip
    ours = produce.PartitionProduceResponse(
        index=3, error_code=6, base_offset=77, log_append_time_ms=stamp
    )
    same(
        produce.ProduceResponse(
            throttle_time_ms=throttle,
            responses=[produce.TopicProduceResponse(name="t", partition_responses=[ours])],
        ),
        theirs,
        version,
    )


@pytest.mark.parametrize("version", range(4))
def test_fetch(version: int) -> None:
    topic = consumer.FetchRequest.FetchTopic
    limit = {"max_bytes": 9999} if version >= 3 else {}
    theirs = consumer.FetchRequest(
        version=version, replica_id=-1, max_wait_ms=500, min_bytes=1, **limit,
        topics=[topic(topic="t", partitions=[
            topic.FetchPartition(partition=3, fetch_offset=12, partition_max_bytes=1 << 20)])],
    )  # fmt: skip
    ours = fetch.FetchPartition(partition=3, fetch_offset=12, partition_max_bytes=1 << 20)
    same(
        fetch.FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            topics=[fetch.FetchTopic(topic="t", partitions=[ours])],
            **limit,
        ),
        theirs,
        version,
    )


@pytest.mark.parametrize("version", range(4))
def test_the_answer_to_fetch(version: int) -> None:
    topic = consumer.FetchResponse.FetchableTopicResponse
    throttle = 7 if version >= 1 else 0
    theirs = consumer.FetchResponse(
        version=version, throttle_time_ms=throttle,
        responses=[topic(topic="t", partitions=[
            topic.PartitionData(
                partition_index=3, error_code=1, high_watermark=15, records=SET)])],
    )  # fmt: skip
    ours = fetch.PartitionData(partition_index=3, error_code=1, high_watermark=15, records=SET)
    same(
        fetch.FetchResponse(
            throttle_time_ms=throttle,
            responses=[fetch.FetchableTopicResponse(topic="t", partitions=[ours])],
        ),
        theirs,
        version,
    )


def test_list_offsets() -> None:
    topic = consumer.ListOffsetsRequest.ListOffsetsTopic
    theirs = consumer.ListOffsetsRequest(
        version=0, replica_id=-1,
        topics=[topic(name="t", partitions=[
            topic.ListOffsetsPartition(partition_index=3, timestamp=-2, max_num_offsets=5)])],
    )  # fmt: skip
    ours = list_offsets.ListOffsetsPartition(partition_index=3, timestamp=-2, max_num_offsets=5)
    same(
        list_offsets.ListOffsetsRequest(
            topics=[list_offsets.ListOffsetsTopic(name="t", partitions=[ours])]
        ),
        theirs,
        0,
    )


def test_the_answer_to_list_offsets() -> None:
    topic = consumer.ListOffsetsResponse.ListOffsetsTopicResponse
    theirs = consumer.ListOffsetsResponse(
        version=0,
        topics=[topic(name="t", partitions=[
            topic.ListOffsetsPartitionResponse(
                partition_index=3, error_code=0, old_style_offsets=[100, 50, 0])])],
    )  # fmt: skip
    ours = list_offsets.ListOffsetsPartitionResponse(
        partition_index=3, old_style_offsets=[100, 50, 0]
    )
    same(
        list_offsets.ListOffsetsResponse(
            topics=[list_offsets.ListOffsetsTopicResponse(name="t", partitions=[ours])]
        ),
        theirs,
        0,
    )
