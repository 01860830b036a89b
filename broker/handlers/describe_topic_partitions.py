"""DescribeTopicPartitions: topics in the order of their names, page by page (KIP-966).

A page ends after so many partitions, or names: one of no topic counts as one partition.
"""

from collections.abc import Iterator
from typing import NamedTuple

from broker.partitions.leadership import NOBODY
from broker.partitions.partition import Partition, described_epoch
from broker.runtime.answers import AnswerRoom, Answers
from broker.runtime.deferred import Deferred
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
SORTED_AT_A_TIME = 1000  # names, before others have their turn


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    probes: BrokerProbes
    node_id: int
    answers: Answers


Context = RequestContext[Services]


def handle(
    request: DescribeTopicPartitionsRequest, context: Context
) -> DescribeTopicPartitionsResponse | Deferred[DescribeTopicPartitionsResponse]:
    """Topics from the cursor on, until the page is full; no list means all of them."""
    context.asks(AclOperation.DESCRIBE, ResourceType.TOPIC)
    page = TopicPage(request, context)
    return context.services.answers.make(page.topics, page.respond, beside=True)


class TopicPage:
    """One page: the topics on it, and where the next one begins."""

    def __init__(self, request: DescribeTopicPartitionsRequest, context: Context) -> None:
        """Nothing is on it."""
        self._request = request
        self._context = context
        self._most = max(1, min(request.response_partition_limit, MAX_PARTITIONS))
        self._remaining = self._most
        self._next: Cursor | None = None

    def topics(self, _: AnswerRoom) -> Iterator[DescribeTopicPartitionsResponseTopic | None]:
        """The topics in order; None where others may have their turn."""
        if not _makes_sense(self._request):
            yield from self._refused()
            return
        for name in self._names():
            if self._next is not None:
                return
            yield None if name is None else self._topic(name)

    def respond(
        self, topics: list[DescribeTopicPartitionsResponseTopic | None]
    ) -> DescribeTopicPartitionsResponse:
        """The answer with these topics."""
        found = [each for each in topics if each is not None]
        return DescribeTopicPartitionsResponse(topics=found, next_cursor=self._next)

    def _refused(self) -> Iterator[DescribeTopicPartitionsResponseTopic]:
        """The response has no place for an error of its own: every topic carries it."""
        for topic in self._request.topics:
            yield _unknown(topic.name, ErrorCode.INVALID_REQUEST, self._context)

    def _names(self) -> Iterator[str | None]:
        """Names in order, from the cursor on: those that are asked for, or all that are shown."""
        cursor = self._request.cursor
        start = "" if cursor is None else cursor.topic_name
        if self._request.topics:
            yield from self._first_asked(start)
            return
        for name in self._context.services.topics.image.topics:
            yield name if name >= start and self._is_shown(name) else None

    def _first_asked(self, start: str) -> Iterator[str | None]:
        """The names of the request that a page has room for, and the one after them."""
        asked, first = self._request.topics, list[str]()
        for at in range(0, len(asked), SORTED_AT_A_TIME):
            some = [each.name for each in asked[at : at + SORTED_AT_A_TIME] if each.name >= start]
            first = sorted({*first, *some})[: self._most + 1]
            yield None
        yield from first

    def _is_shown(self, name: str) -> bool:
        """True for a topic that is still there, and that the client may know of."""
        context = self._context
        return name in context.services.topics.image.topics and context.sees(
            AclOperation.DESCRIBE, ResourceType.TOPIC, name
        )

    def _topic(self, name: str) -> DescribeTopicPartitionsResponseTopic | None:
        """The next topic; None when the page is full, and the next one begins with it."""
        if self._remaining <= 0:
            self._next = Cursor(topic_name=name, partition_index=0)
            return None
        cursor = self._request.cursor
        is_first = cursor is not None and cursor.topic_name == name
        start = cursor.partition_index if cursor is not None and is_first else 0
        topic = _describe(name, start, self._remaining, self._context)
        self._remaining -= max(1, len(topic.partitions))
        end = start + len(topic.partitions)
        if not topic.error_code and end < _partition_count(name, self._context):
            self._next = Cursor(topic_name=name, partition_index=end)
        return topic


def _makes_sense(request: DescribeTopicPartitionsRequest) -> bool:
    """A cursor points to a partition of a topic that is asked for."""
    cursor, topics = request.cursor, request.topics
    if cursor is None:
        return True
    is_asked = not topics or any(each.name == cursor.topic_name for each in topics)
    return cursor.partition_index >= 0 and is_asked


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
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic.topic_id,
        is_internal=name in context.services.topics.internal_topics,
        partitions=[_partition(each, context) for each in topic.partitions[start : start + limit]],
        topic_authorized_operations=context.bits(ResourceType.TOPIC, name),
    )


def _partition(partition: Partition, context: Context) -> DescribeTopicPartitionsResponsePartition:
    leader = partition.leader_or(context.services.node_id)
    nodes = [leader] if leader != NOBODY else []
    epoch, code = described_epoch(partition)
    context.count_error(code)
    return DescribeTopicPartitionsResponsePartition(
        error_code=code if nodes else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=partition.index,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=nodes,
        isr_nodes=nodes,
        eligible_leader_replicas=[],
        last_known_elr=[],
    )


def _unknown(name: str, code: ErrorCode, context: Context) -> DescribeTopicPartitionsResponseTopic:
    context.count_error(code)
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name)
