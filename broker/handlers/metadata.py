"""Metadata: the topics and who leads their partitions: on a single node always this node.

A topic that does not exist is created when both the client and `auto.create.topics.enable` say so.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from broker.partitions.leadership import NOBODY
from broker.partitions.partition import Partition
from broker.quotas.service import Quotas
from broker.runtime.gathering import wait_for
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.security.audit.lines import AdminChange
from broker.security.audit.trail import AuditTrail
from broker.server.admin_actions import who_asks
from broker.server.endpoints import AdvertisedEndpoints
from broker.topics.creation import TopicRules
from broker.topics.metadata_image import MetadataImage, TopicImage
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from protocol.acls import CLUSTER_NAME, NO_OPERATIONS, AclOperation, ResourceType
from protocol.apis.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from protocol.errors import ErrorCode
from protocol.wire import ZERO_UUID
from storage.directory.log_manager import LogManager
from storage.files.topic_name import fault_in_name

EMPTY_LIST_MEANS_NONE_SINCE_VERSION = 1
IDS_ASKED_FOR_SINCE_VERSION = 12  # answers have them since 10


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    config: ConfigStore
    probes: BrokerProbes
    node_id: int
    endpoints: AdvertisedEndpoints
    trail: AuditTrail
    logs: LogManager
    rules: TopicRules
    quotas: Quotas


Context = RequestContext[Services]

SHOWN = frozenset((ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
"""Codes of topics whose rights are shown: there need be no topic."""


def handle(
    request: MetadataRequest, context: Context
) -> MetadataResponse | Awaitable[MetadataResponse]:
    """All topics for a null list (v0: an empty one), else those asked for, by name or by id."""
    context.asks(AclOperation.DESCRIBE, ResourceType.TOPIC)
    image = context.services.topics.image
    wanted = request.topics
    if wanted is None or (not wanted and context.api_version < EMPTY_LIST_MEANS_NONE_SINCE_VERSION):
        shown = context.allowed(
            AclOperation.DESCRIBE, ResourceType.TOPIC, image.topics.values(), lambda each: each.name
        )
        return _respond([_describe(topic, context) for topic in shown], request, context)
    fault = _fault_in_question(wanted, context)
    if fault:
        return _refused(wanted, fault, context)
    asked = _by_one_kind(wanted)
    missing = _missing(asked, image, context)
    denied: dict[str, int] = {}

    def answered(refused: dict[str, int]) -> MetadataResponse:
        return _respond(_described(asked, refused, context), request, context)

    if missing and request.allow_auto_topic_creation and _may_create(context):
        missing, denied = _creatable(missing, context)
        if missing:
            return _create_and_answer(missing, denied, answered, context)
    return answered(denied)


def _may_create(context: Context) -> bool:
    return context.services.config.broker_config.auto_create_topics_enable


def _missing(
    wanted: list[MetadataRequestTopic], image: MetadataImage, context: Context
) -> list[str]:
    """Names of no topic, as far as the client may know that; nothing marks them as asked for."""
    names = dict.fromkeys(each.name for each in wanted if each.name)
    missing = [name for name in names if name not in image.topics and fault_in_name(name) is None]
    return context.allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, missing, lambda name: name)


def _creatable(missing: list[str], context: Context) -> tuple[list[str], dict[str, int]]:
    """Those that the client may create, and the codes of the others."""
    if context.sees(AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
        return missing, {}
    free = [each for each in missing if context.may(AclOperation.CREATE, ResourceType.TOPIC, each)]
    rest = set(missing) - set(free)
    return free, dict.fromkeys(rest, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


async def _create_and_answer(
    missing: list[str],
    denied: dict[str, int],
    answered: Callable[[dict[str, int]], MetadataResponse],
    context: Context,
) -> MetadataResponse:
    there = context.services.topics.image.topics
    allowance = context.services.quotas.allowance(context, strict=True)
    refused = await context.services.rules.auto_create(missing, allowance.take)
    for name in missing:
        if name not in there and name in context.services.topics.image.topics:
            made = AdminChange("create topic", name, "auto.create.topics.enable")
            context.services.trail.noted(who_asks(context), made, "Metadata")
    room = context.services.trail.room()
    if room is not None:
        await wait_for(room)
    return answered({**refused, **denied})


def _described(
    wanted: list[MetadataRequestTopic], refused: dict[str, int], context: Context
) -> list[MetadataResponseTopic]:
    image = context.services.topics.image
    distinct = {(each.name, each.topic_id): each for each in wanted}
    return [_one(each, refused, image, context) for each in distinct.values()]


def _one(
    wanted: MetadataRequestTopic,
    refused: dict[str, int],
    image: MetadataImage,
    context: Context,
) -> MetadataResponseTopic:
    found = image.topic(wanted.name, wanted.topic_id)
    name = wanted.name or (found.name if found is not None else "")
    is_hidden = name and not context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name)
    if found is not None and not is_hidden:
        return _describe(found, context)
    code = _why_not_found(wanted, refused)
    if is_hidden:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    context.count_error(code)
    return MetadataResponseTopic(
        error_code=code,
        name=wanted.name,
        topic_id=wanted.topic_id,
        is_internal=not is_hidden and wanted.name in context.services.topics.internal_topics,
    )


def _by_one_kind(wanted: list[MetadataRequestTopic]) -> list[MetadataRequestTopic]:
    """The topics with an id where one has it, as in Kafka; else all."""
    by_id = [each for each in wanted if each.topic_id != ZERO_UUID]
    return [MetadataRequestTopic(name=None, topic_id=each.topic_id) for each in by_id] or wanted


def _fault_in_question(wanted: list[MetadataRequestTopic], context: Context) -> int:
    """The code that ends a whole request in which a topic has no name, or one more than the
    version allows: those of a running Kafka 4.3.
    """
    is_by_id = any(each.topic_id != ZERO_UUID for each in wanted)
    is_by_null = any(each.name is None for each in wanted)
    if context.api_version < IDS_ASKED_FOR_SINCE_VERSION:
        return ErrorCode.INVALID_REQUEST if is_by_id or is_by_null else ErrorCode.NONE
    return ErrorCode.UNKNOWN_SERVER_ERROR if is_by_null and not is_by_id else ErrorCode.NONE


def _refused(wanted: list[MetadataRequestTopic], code: int, context: Context) -> MetadataResponse:
    """No topic is described, nor the cluster."""
    context.count_error(code)
    topics = [
        MetadataResponseTopic(error_code=code, name=each.name or "", topic_id=each.topic_id)
        for each in wanted
    ]
    return MetadataResponse(topics=topics, error_code=code)


def _why_not_found(wanted: MetadataRequestTopic, refused: dict[str, int]) -> int:
    if wanted.name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if fault_in_name(wanted.name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return refused.get(wanted.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _describe(topic: TopicImage, context: Context) -> MetadataResponseTopic:
    node_id = context.services.node_id
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in context.services.topics.internal_topics,
        partitions=[_partition(partition, node_id) for partition in topic.partitions],
    )


def _partition(partition: Partition, node_id: int) -> MetadataResponsePartition:
    leader = partition.leader_or(node_id)
    nodes = [leader] if leader != NOBODY else []
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if nodes else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=partition.index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=nodes,
        isr_nodes=nodes,
    )


def _respond(
    topics: list[MetadataResponseTopic], request: MetadataRequest, context: Context
) -> MetadataResponse:
    services = context.services
    host, port = context.services.endpoints.of(context.peer)
    if request.include_topic_authorized_operations:
        for each in topics:
            if each.name is not None and each.error_code in SHOWN:
                each.topic_authorized_operations = context.bits(ResourceType.TOPIC, each.name)
    bits = NO_OPERATIONS
    if request.include_cluster_authorized_operations:
        bits = context.cluster_bits()
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=services.node_id, host=host, port=port),
            *(
                MetadataResponseBroker(node_id=number, host=host, port=port)
                for number, (host, port) in services.endpoints.known_to(context.peer).items()
            ),
        ],
        cluster_id=services.logs.cluster_id,
        controller_id=services.node_id,
        topics=topics,
        cluster_authorized_operations=bits,
    )
