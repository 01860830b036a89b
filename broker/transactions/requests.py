"""Shared parts of transaction requests: partitions that may join, and old clients' codes."""

from collections.abc import Iterable
from typing import Any, Protocol

from broker.runtime.request_context import RequestContext
from broker.runtime.wire_error import wire_error
from broker.topics.names import check_not_internal
from broker.topics.topic_catalog import TopicCatalog
from broker.transactions.transaction import Place
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError


class NamedPartitions(Protocol):
    """Partitions of one topic, as a request names them."""

    name: str
    partitions: list[int]


def places_of(topics: Iterable[NamedPartitions]) -> list[Place]:
    """All partitions of a request, in its order."""
    return [(topic.name, index) for topic in topics for index in topic.partitions]


def code_of_place(place: Place, topics: TopicCatalog) -> int:
    """The reason why a partition cannot take part in a transaction; NONE when it can."""
    topic, index = place
    try:
        check_not_internal(topic, topics.internal_topics)
        topics.image.require(topic, index)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def answered_code(
    error: KafkaError | StorageError,
    context: RequestContext[Any],
    *,
    fenced_since: int,
) -> int:
    """The code that a client of this version knows; it is counted."""
    if isinstance(error, StorageError):
        code: int = wire_error(error).code
    elif error.code == ErrorCode.PRODUCER_FENCED and context.api_version < fenced_since:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    else:
        code = error.code
    context.count_error(code)
    return code
