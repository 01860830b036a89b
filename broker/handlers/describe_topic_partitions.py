"""DescribeTopicPartitions: topics in the order of their names, page by page (KIP-966)."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from broker.partitions.leadership import NOBODY
from broker.partitions.partition import Partition
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.topic_catalog import TopicCatalog
from protocol.acls import AclOperation, ResourceType
from protocol.apis.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from protocol.errors import ErrorCode

MAX_PARTITIONS = 2000  # max.request.partition.size.limit of Kafka's brokers


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    probes: BrokerProbes
    node_id: int


Context = RequestContext[Services]


def handle(
    request: DescribeTopicPartitionsRequest, context: Context
) -> DescribeTopicPartitionsResponse:
    """Topics from the cursor on, until the page is full; no list means all of them."""
    context.asks(AclOperation.DESCRIBE, ResourceType.TOPIC)
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


def _topics(request: DescribeTopicPartitionsRequest, context: Context) -> Iterator[tuple[str, int]]:
    """Names in order, each with the first partition to tell."""
    names: Iterable[str] = {topic.name for topic in request.topics}
    cursor = request.cursor
    for name in sorted(names or _shown(context)):
        if cursor is None or name > cursor.topic_name:
            yield name, 0
        elif name == cursor.topic_name:
            yield name, cursor.partition_index


def _shown(context: Context) -> list[str]:
    names = context.services.topics.image.topics
    return context.allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, names, lambda name: name)


def _partition_count(name: str, context: Context) -> int:
    topic = context.services.topics.image.topics.get(name)
    return len(topic.partitions) if topic is not None else 0


def _describe(
    name: str, start: int, limit: int, context: Context
) -> DescribeTopicPartitionsResponseTopic:
    if not context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
        return _unknown(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, context)
    topic = context.services.topics.image.topics.get(name)
    if topic is None:
        missing = _unknown(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, context)
        missing.topic_authorized_operations = context.bits(ResourceType.TOPIC, name)
        return missing
    node_id = context.services.node_id
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic.topic_id,
        is_internal=name in context.services.topics.internal_topics,
        partitions=[_partition(each, node_id) for each in topic.partitions[start : start + limit]],
        topic_authorized_operations=context.bits(ResourceType.TOPIC, name),
    )


def _partition(partition: Partition, node_id: int) -> DescribeTopicPartitionsResponsePartition:
    leader = partition.leader_or(node_id)
    nodes = [leader] if leader != NOBODY else []
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if nodes else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=partition.index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=nodes,
        isr_nodes=nodes,
        eligible_leader_replicas=[],
        last_known_elr=[],
    )


def _refuse(
    request: DescribeTopicPartitionsRequest, context: Context
) -> DescribeTopicPartitionsResponse:
    """The response has no place for an error of its own: every topic carries it."""
    return DescribeTopicPartitionsResponse(
        topics=[
            _unknown(topic.name, ErrorCode.INVALID_REQUEST, context) for topic in request.topics
        ]
    )


def _unknown(name: str, code: ErrorCode, context: Context) -> DescribeTopicPartitionsResponseTopic:
    context.count_error(code)
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name)
