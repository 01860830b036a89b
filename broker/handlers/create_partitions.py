"""CreatePartitions: raises the number of partitions of topics; it never sinks."""

from collections import Counter
from typing import NamedTuple

from broker.guards.disk_space import DiskSpace
from broker.quotas.service import Quotas
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.runtime.wire_error import wire_error
from broker.topics.creation import TopicRules
from broker.topics.names import check_not_internal
from broker.topics.topic_catalog import TopicCatalog
from protocol.acls import AclOperation, ResourceType
from protocol.apis.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError

REFUSES_BY_QUOTA_SINCE_VERSION = 3


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    probes: BrokerProbes
    disk_space: DiskSpace
    rules: TopicRules
    quotas: Quotas


Context = RequestContext[Services]


async def handle(request: CreatePartitionsRequest, context: Context) -> CreatePartitionsResponse:
    """One result per name; a name that stands in the request twice is refused."""
    context.asks(AclOperation.ALTER, ResourceType.TOPIC)
    asked = Counter(topic.name for topic in request.topics)
    topics, errors, counts = context.services.topics, dict[str, KafkaError](), dict[str, int]()
    strict = context.api_version >= REFUSES_BY_QUOTA_SINCE_VERSION
    allowance = context.services.quotas.allowance(context, strict=strict)
    await topics.authority.catch_up()
    async with topics.changing:
        more = 0
        for topic in request.topics:
            try:
                added = _added(topic, asked, context)
                context.services.rules.check_partition_limit(more + added)
                context.services.disk_space.check_room()
                allowance.take(added)
            except KafkaError as error:
                errors[topic.name] = error
            else:
                more += added
                counts[topic.name] = topic.count
        if counts and not request.validate_only:
            await _grow(counts, errors, context)
    return CreatePartitionsResponse(
        throttle_time_ms=allowance.rest_ms,
        results=[_result(name, errors.get(name), context) for name in asked],
    )


def _added(topic: CreatePartitionsTopic, asked: Counter[str], context: Context) -> int:
    """The number of partitions to add."""
    if asked[topic.name] > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    context.require(AclOperation.ALTER, ResourceType.TOPIC, topic.name)
    check_not_internal(topic.name, context.services.topics.internal_topics)
    image = context.services.topics.image.topics.get(topic.name)
    if image is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        )
    present = len(image.partitions)
    if topic.count == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if topic.count < present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {topic.count} would "
            "not be an increase.",
        )
    added = topic.count - present
    if topic.assignments is not None:
        if len(topic.assignments) != added:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {added} additional partition(s), but only "
                f"{len(topic.assignments)} assignment(s) were specified.",
            )
        context.services.rules.check_assignments([each.broker_ids for each in topic.assignments])
    return added


async def _grow(counts: dict[str, int], errors: dict[str, KafkaError], context: Context) -> None:
    try:
        await context.services.topics.add_partitions(counts)
    except StorageError as error:
        refusal = wire_error(error)
        errors.update(dict.fromkeys(counts, refusal))


def _result(name: str, error: KafkaError | None, context: Context) -> CreatePartitionsTopicResult:
    if error is None:
        return CreatePartitionsTopicResult(name=name)
    context.count_error(error.code)
    return CreatePartitionsTopicResult(
        name=name, error_code=error.code, error_message=error.message
    )
