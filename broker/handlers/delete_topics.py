"""DeleteTopics: by name, or (version 6) by id. Gone for clients at once, from the disk later."""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple
from uuid import UUID

from broker.groups.coordinator import GroupCoordinator
from broker.quotas.mutations import Allowance
from broker.quotas.service import Quotas
from broker.record_times.offenders import DirtyClients
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.runtime.slowly import slowly
from broker.runtime.wire_error import wire_error
from broker.share.share_reads import ShareReads
from broker.share.state.coordinator import ShareCoordinator
from broker.topics.metadata_image import TopicImage
from broker.topics.names import check_not_internal
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.wire import ZERO_UUID
from storage.errors import StorageError

IDS_SINCE_VERSION = 6
DISABLED_CODE_SINCE_VERSION = 3
REFUSES_BY_QUOTA_SINCE_VERSION = 5


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    config: ConfigStore
    groups: GroupCoordinator
    share_states: ShareCoordinator
    share_reads: ShareReads
    probes: BrokerProbes
    dirty_clients: DirtyClients
    quotas: Quotas


Context = RequestContext[Services]


async def handle(request: DeleteTopicsRequest, context: Context) -> DeleteTopicsResponse:
    """One result per name or id; nothing of a refused topic is touched."""
    context.ends_with_client = True
    wanted = _wanted(request, context)
    may_delete_any = context.sees(AclOperation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME)
    strict = context.api_version >= REFUSES_BY_QUOTA_SINCE_VERSION
    allowance = context.services.quotas.allowance(context, strict=strict)
    await context.services.topics.authority.catch_up()
    async with context.services.topics.changing:
        asked, distinct = await _counted(wanted, context)
        results = [
            _judge(each, asked, allowance, context, may_delete=may_delete_any)
            async for each in slowly(distinct)
        ]
        context.ends_with_client = False
        done = [each for each in results if not each.error_code]
        doomed = [each.name for each in done if each.name is not None]
        try:
            await context.services.topics.delete(doomed)
            for name in doomed:
                context.services.probes.topic_deleted(name)
                context.services.dirty_clients.topic_deleted(name)
            context.services.groups.topics_deleted(doomed)
            ids = [each.topic_id for each in done]
            context.services.share_states.topics_deleted(ids)
            context.services.share_reads.topics_deleted(ids)
        except StorageError as error:
            refusal = wire_error(error)
            results = [
                each if each.error_code else _refusal(each.name, each.topic_id, refusal, context)
                for each in results
            ]
    return DeleteTopicsResponse(throttle_time_ms=allowance.rest_ms, responses=results)


async def _counted(
    wanted: Iterable[DeleteTopicState], context: Context
) -> tuple[Counter[str | None], Collection[DeleteTopicState]]:
    """Names, each with how often it is asked for, and what is asked for, each once."""
    asked, distinct = Counter[str | None](), dict[object, DeleteTopicState]()
    async for each in slowly(wanted, 1000):
        asked[_name_of(each, context)] += 1
        distinct[each.name, each.topic_id] = each
    return asked, distinct.values()


def _wanted(request: DeleteTopicsRequest, context: Context) -> Iterable[DeleteTopicState]:
    if context.api_version >= IDS_SINCE_VERSION:
        return request.topics
    return (DeleteTopicState(name=name) for name in request.topic_names)


def _name_of(wanted: DeleteTopicState, context: Context) -> str | None:
    image = context.services.topics.image
    found = image.by_id.get(wanted.topic_id)
    return found.name if found is not None and wanted.name is None else wanted.name


def _judge(
    wanted: DeleteTopicState,
    asked: Counter[str | None],
    allowance: Allowance,
    context: Context,
    *,
    may_delete: bool,
) -> DeletableTopicResult:
    try:
        _check(wanted, context)
        _check_once(_name_of(wanted, context), asked)
        if not may_delete:
            _check_rights(wanted, context)
        topic = _find(wanted, context)
        allowance.take(len(topic.partitions))
    except KafkaError as error:
        return _refusal(wanted.name, wanted.topic_id, error, context)
    return DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)


def _check_once(name: str | None, asked: Counter[str | None]) -> None:
    if name is not None and asked[name] > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name or topic id.")


def _check_rights(wanted: DeleteTopicState, context: Context) -> None:
    """Checks the rights to a topic; whether a named one exists is shown to who may describe it."""
    name = wanted.name
    if name is not None:
        context.require(AclOperation.DESCRIBE, ResourceType.TOPIC, name)
    found = context.services.topics.image.topic(name, wanted.topic_id)
    if found is None:
        return
    if not context.may(AclOperation.DELETE, ResourceType.TOPIC, found.name):
        if context.sees(AclOperation.DESCRIBE, ResourceType.TOPIC, found.name):
            wanted.name = found.name
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _find(wanted: DeleteTopicState, context: Context) -> TopicImage:
    name = _name_of(wanted, context)
    topic = context.services.topics.image.topic(name, wanted.topic_id)
    if topic is not None:
        return topic
    if wanted.name is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    raise KafkaError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
    )


def _check(wanted: DeleteTopicState, context: Context) -> None:
    if not context.services.config.broker_config.delete_topic_enable:
        known = context.api_version >= DISABLED_CODE_SINCE_VERSION
        raise KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED if known else ErrorCode.INVALID_REQUEST,
            "delete.topic.enable is false",
        )
    check_not_internal(_name_of(wanted, context), context.services.topics.internal_topics)
    if wanted.name is not None and wanted.topic_id != ZERO_UUID:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
        )
    if wanted.name is None and wanted.topic_id == ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")


def _refusal(
    name: str | None, topic_id: UUID, error: KafkaError, context: Context
) -> DeletableTopicResult:
    context.count_error(error.code)
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=error.code, error_message=error.message
    )
