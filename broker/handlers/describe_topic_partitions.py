"""DescribeTopicPartitions: topics in the order of their names, page by page (KIP-966)."""

from collections.abc import Iterable, Iterator

from broker.partitions.partition import Partition
from broker.requests.services import HandlerContext
from protocol.apis.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from protocol.errors import ErrorCode

MAX_PARTITIONS = 2000  # max.request.partition.size.limit of Kafka's brokers


def handle(
    request: DescribeTopicPartitionsRequest, context: HandlerContext
) -> DescribeTopicPartitionsResponse:
    """Topics from the cursor on, until the page is full; no list means all of them."""
    if not _makes_sense(request):
        return _refuse(request, context)
    remaining = max(1, min(request.response_partition_limit, MAX_PARTITIONS))
    response = DescribeTopicPartitionsResponse()
    for name, start in _topics(request, context):
        if remaining == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = _describe(name, start, remaining, context)
        remaining -= len(topic.partitions)
        response.topics.append(topic)
        end = start + len(topic.partitions)
        if not topic.error_code and end < _partition_count(name, context):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
    return response


def _makes_sense(request: DescribeTopicPartitionsRequest) -> bool:
    """A cursor points to a partition of a topic that is asked for."""
    cursor = request.cursor
    if cursor is None:
        return True
    names = {topic.name for topic in request.topics}
    return cursor.partition_index >= 0 and (not names or cursor.topic_name in names)


def _topics(
    request: DescribeTopicPartitionsRequest, context: HandlerContext
) -> Iterator[tuple[str, int]]:
    """Names in order, each with the first partition to tell."""
    names: Iterable[str] = {topic.name for topic in request.topics}
    cursor = request.cursor
    for name in sorted(names or context.broker.catalog.image.topics):
        if cursor is None or name > cursor.topic_name:
            yield name, 0
        elif name == cursor.topic_name:
            yield name, cursor.partition_index


def _partition_count(name: str, context: HandlerContext) -> int:
    topic = context.broker.catalog.image.topics.get(name)
    return len(topic.partitions) if topic is not None else 0


def _describe(
    name: str, start: int, limit: int, context: HandlerContext
) -> DescribeTopicPartitionsResponseTopic:
    topic = context.broker.catalog.image.topics.get(name)
    if topic is None:
        return _unknown(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, context)
    node = [context.broker.node_id]
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic.topic_id,
        is_internal=name in context.broker.catalog.internal_topics,
        partitions=[_partition(each, node) for each in topic.partitions[start : start + limit]],
    )


def _partition(partition: Partition, node: list[int]) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        partition_index=partition.index,
        leader_id=node[0],
        leader_epoch=partition.log.leader_epoch,
        replica_nodes=node,
        isr_nodes=node,
        eligible_leader_replicas=[],
        last_known_elr=[],
    )


def _refuse(
    request: DescribeTopicPartitionsRequest, context: HandlerContext
) -> DescribeTopicPartitionsResponse:
    """The response has no place for an error of its own: every topic carries it."""
    return DescribeTopicPartitionsResponse(
        topics=[
            _unknown(topic.name, ErrorCode.INVALID_REQUEST, context) for topic in request.topics
        ]
    )


def _unknown(
    name: str, code: ErrorCode, context: HandlerContext
) -> DescribeTopicPartitionsResponseTopic:
    context.count_error(code)
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name)
