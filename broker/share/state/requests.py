"""Requests 83-87: a result for each share partition, as Kafka's share coordinator answers them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after, gather
from broker.runtime.request_context import RequestContext
from broker.share.state.key import ShareKey
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.errors import ErrorCode, KafkaError


class NamedPartition(Protocol):
    """A partition in a request."""

    partition: int


P = TypeVar("P", bound=NamedPartition)
V = TypeVar("V")
R = TypeVar("R")


class NamedTopic(Protocol[P]):
    """A topic in a request."""

    topic_id: UUID
    partitions: list[P]


class StateRequest(Protocol[P]):
    """Any of the five requests."""

    group_id: str

    @property
    def topics(self) -> Sequence[NamedTopic[P]]:
        """The share partitions."""


class Shape(NamedTuple):
    """Classes of one API's response."""

    response: Callable[..., Any]
    topic: Callable[..., Any]
    partition: Callable[..., Any]


def answered(
    request: StateRequest[P],
    context: RequestContext[Any],
    shape: Shape,
    ask: Callable[[ShareKey, P], V | Deferred[V]],
    fields: Callable[[V], dict[str, object]],
) -> Any:
    """The response: of `ask` for each share partition, whose value gives the result's fields.

    As Kafka's, it is empty for a request without a group, or with a topic without partitions.
    """
    may = context.may(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
    if may and not (request.group_id and all(topic.partitions for topic in request.topics)):
        return shape.response(results=[])

    def one(topic_id: UUID, wanted: P) -> Any:
        refuse = partial(_refused, context, shape, wanted)
        if not may:
            return refuse(KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        try:
            value = ask(ShareKey(request.group_id, topic_id, wanted.partition), wanted)
        except KafkaError as error:
            return refuse(error)
        told = partial(_result, shape, wanted, fields)
        return after(value, told, refuse) if isinstance(value, Deferred) else told(value)

    results = [one(topic.topic_id, each) for topic in request.topics for each in topic.partitions]
    return gather(results, partial(_by_topic, request, shape))


def no_fields(_: None) -> dict[str, object]:
    """The result of a change has its code alone."""
    return {}


def _result(
    shape: Shape, wanted: NamedPartition, fields: Callable[[V], dict[str, object]], value: V
) -> Any:
    return shape.partition(partition=wanted.partition, **fields(value))


def _refused(
    context: RequestContext[Any], shape: Shape, wanted: NamedPartition, error: KafkaError
) -> Any:
    context.count_error(error.code)
    return shape.partition(
        partition=wanted.partition, error_code=error.code, error_message=error.message
    )


def _by_topic(request: StateRequest[Any], shape: Shape, results: list[Any]) -> Any:
    """The results by topic, in the order of the request."""
    rest = iter(results)
    topics = [
        shape.topic(topic_id=topic.topic_id, partitions=[next(rest) for _ in topic.partitions])
        for topic in request.topics
    ]
    return shape.response(results=topics)
