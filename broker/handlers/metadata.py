"""Metadata: the topics and who leads their partitions: on a single node always this node.

A topic that does not exist is created when both the client and `auto.create.topics.enable` say so.
"""

import asyncio
from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

from broker.partitions.leadership import NOBODY
from broker.partitions.partition import Partition, described_epoch
from broker.quotas.service import Quotas
from broker.runtime.answers import AnswerRoom, Answers
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import wait_for
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.security.audit.lines import AdminChange
from broker.security.audit.trail import AuditTrail
from broker.server.admin_actions import who_asks
from broker.server.endpoints import AdvertisedEndpoints
from broker.topics.creation import MAX_AUTO_CREATED, TopicRules
from broker.topics.metadata_image import TopicImage
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
    answers: Answers


Context = RequestContext[Services]

SHOWN = frozenset((ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
"""Codes of topics whose rights are shown: there need be no topic."""


def handle(
    request: MetadataRequest, context: Context
) -> MetadataResponse | Deferred[MetadataResponse]:
    """All topics for a null list (v0: an empty one), else those asked for, by name or by id."""
    context.asks(AclOperation.DESCRIBE, ResourceType.TOPIC)
    question = MetadataQuestion(request, context)
    return context.services.answers.make(question.topics, question.respond, beside=True)


class MetadataQuestion:
    """A request, and what is found out about it while its topics are described."""

    def __init__(self, request: MetadataRequest, context: Context) -> None:
        """Nothing is found out."""
        self._request = request
        self._context = context
        self._fault = 0
        """The code that ends the whole request."""
        self._refused: dict[str, int] = {}
        """Codes of topics that were to be made."""

    def topics(self, room: AnswerRoom) -> Iterator[MetadataResponseTopic | None]:
        """Each topic as it is described; None where others may have their turn."""
        wanted, context = self._request.topics, self._context
        knows_none = context.api_version >= EMPTY_LIST_MEANS_NONE_SINCE_VERSION
        if wanted is None or not (wanted or knows_none):
            for topic in context.services.topics.image.topics.values():
                yield self._shown(topic) if _is_shown(topic.name, context) else None
            return
        self._fault = yield from _fault_in_question(wanted, context)
        if self._fault:
            yield from _refused(wanted, self._fault, context)
            return
        asked = yield from _distinct(wanted)
        if self._request.allow_auto_topic_creation and _may_create(context):
            yield from self._make_missing(asked, room)
        for each in asked:
            yield self._with_bits(_one(each, self._refused, context))

    def respond(self, topics: list[MetadataResponseTopic | None]) -> MetadataResponse:
        """The answer with these topics, and the cluster unless the whole is refused."""
        found = [each for each in topics if each is not None]
        if self._fault:
            return MetadataResponse(topics=found, error_code=self._fault)
        return _respond(found, self._request, self._context)

    def _make_missing(
        self, asked: Iterable[MetadataRequestTopic], room: AnswerRoom
    ) -> Iterator[None]:
        """Has topics made; goes on when they are."""
        missing = yield from _missing(asked, self._context)
        free, self._refused = yield from _creatable(missing, self._context)
        if free:
            making = asyncio.get_running_loop().create_task(_create(free, self._context))
            room.waits_for = making
            yield None
            self._refused |= making.result()

    def _shown(self, topic: TopicImage) -> MetadataResponseTopic:
        return self._with_bits(_describe(topic, self._context))

    def _with_bits(self, topic: MetadataResponseTopic) -> MetadataResponseTopic:
        """The same, with the client's rights where it asks for them."""
        is_asked = self._request.include_topic_authorized_operations
        if is_asked and topic.name is not None and topic.error_code in SHOWN:
            bits = self._context.bits(ResourceType.TOPIC, topic.name)
            topic.topic_authorized_operations = bits
        return topic


def _may_create(context: Context) -> bool:
    return context.services.config.broker_config.auto_create_topics_enable


def _is_shown(name: str, context: Context) -> bool:
    return context.sees(AclOperation.DESCRIBE, ResourceType.TOPIC, name)


def _missing(
    wanted: Iterable[MetadataRequestTopic], context: Context
) -> Generator[None, None, list[str]]:
    """Names of no topic, as far as the client may know that; nothing marks them as asked for."""
    missing: dict[str, None] = {}
    for name in filter(None, (each.name for each in wanted)):
        is_there = name in context.services.topics.image.topics
        if not is_there and fault_in_name(name) is None and _is_shown(name, context):
            missing[name] = None
        yield
    return list(missing)


def _creatable(
    missing: list[str], context: Context
) -> Generator[None, None, tuple[list[str], dict[str, int]]]:
    """Those that the client may create, and the codes of the others."""
    if context.sees(AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
        return missing, {}
    free, denied = list[str](), dict[str, int]()
    for name in missing:
        if context.may(AclOperation.CREATE, ResourceType.TOPIC, name):
            free.append(name)
        else:
            denied[name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        yield
    return free, denied


async def _create(missing: list[str], context: Context) -> dict[str, int]:
    """Makes topics, and traces them; the codes of those that are refused."""
    there = context.services.topics.image.topics
    await _room(context)
    allowance = context.services.quotas.allowance(context, strict=True)
    refused = await context.services.rules.auto_create(missing, allowance.take)
    for name in missing[:MAX_AUTO_CREATED]:
        if name not in there and name in context.services.topics.image.topics:
            made = AdminChange("create topic", name, "auto.create.topics.enable")
            context.services.trail.noted(who_asks(context), made, "Metadata")
    await _room(context)
    return refused


async def _room(context: Context) -> None:
    """Waits until the audit has room."""
    room = context.services.trail.room()
    if room is not None:
        await wait_for(room)


def _one(
    wanted: MetadataRequestTopic, refused: dict[str, int], context: Context
) -> MetadataResponseTopic:
    found = context.services.topics.image.topic(wanted.name, wanted.topic_id)
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


def _distinct(
    wanted: list[MetadataRequestTopic],
) -> Generator[None, None, list[MetadataRequestTopic]]:
    """Each topic once: those with an id where one has it, as in Kafka; else all."""
    by_id: dict[UUID, MetadataRequestTopic] = {}
    by_name: dict[str | None, MetadataRequestTopic] = {}
    for each in wanted:
        if each.topic_id != ZERO_UUID:
            by_id[each.topic_id] = MetadataRequestTopic(name=None, topic_id=each.topic_id)
        elif not by_id:
            by_name[each.name] = each
        yield
    return list((by_id or by_name).values())


def _fault_in_question(
    wanted: list[MetadataRequestTopic], context: Context
) -> Generator[None, None, int]:
    """The code that ends a whole request in which a topic has no name, or one more than the
    version allows: those of a running Kafka 4.3.
    """
    is_by_id = is_by_null = False
    for each in wanted:
        is_by_id = is_by_id or each.topic_id != ZERO_UUID
        is_by_null = is_by_null or each.name is None
        yield
    if context.api_version < IDS_ASKED_FOR_SINCE_VERSION:
        return ErrorCode.INVALID_REQUEST if is_by_id or is_by_null else ErrorCode.NONE
    return ErrorCode.UNKNOWN_SERVER_ERROR if is_by_null and not is_by_id else ErrorCode.NONE


def _refused(
    wanted: list[MetadataRequestTopic], code: int, context: Context
) -> Iterator[MetadataResponseTopic]:
    """No topic is described, nor the cluster."""
    context.count_error(code)
    for each in wanted:
        yield MetadataResponseTopic(error_code=code, name=each.name or "", topic_id=each.topic_id)


def _why_not_found(wanted: MetadataRequestTopic, refused: dict[str, int]) -> int:
    if wanted.name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if fault_in_name(wanted.name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return refused.get(wanted.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _describe(topic: TopicImage, context: Context) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in context.services.topics.internal_topics,
        partitions=[_partition(partition, context) for partition in topic.partitions],
    )


def _partition(partition: Partition, context: Context) -> MetadataResponsePartition:
    leader = partition.leader_or(context.services.node_id)
    nodes = [leader] if leader != NOBODY else []
    epoch, code = described_epoch(partition)
    context.count_error(code)
    return MetadataResponsePartition(
        error_code=code if nodes else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=partition.index,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=nodes,
        isr_nodes=nodes,
    )


def _respond(
    topics: list[MetadataResponseTopic], request: MetadataRequest, context: Context
) -> MetadataResponse:
    services = context.services
    host, port = context.services.endpoints.of(context.peer)
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
