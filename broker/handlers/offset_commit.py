"""OffsetCommit: stores how far a group has come; answered when that is durable.

Each offset is judged by itself (does its partition exist, is its text short enough); those that
pass are stored as one batch.
"""

from functools import partial
from typing import NamedTuple

from broker.groups.classic.group import Group, Place
from broker.groups.classic.members import MemberClaim
from broker.groups.coordinator import GroupCoordinator
from broker.groups.records.classic import NONE, OffsetCommitValue
from broker.groups.requests import CommitAsked, topic_of
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.security.audit.trail import AuditTrail
from broker.server.admin_actions import change, who_asks
from broker.topics.metadata_image import TopicImage
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType
from protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.errors import ErrorCode, KafkaError
from storage.env import Clock

NO_GROUP_SINCE_VERSION = 9
SET_OFFSET, OFFSET_COMMIT = "set offset", "OffsetCommit"

Judged = list[tuple[OffsetCommitRequestTopic, list[tuple[int, int]]]]
"""Topics as asked for, with the numbers of their partitions and the codes so far."""


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    config: ConfigStore
    groups: GroupCoordinator
    probes: BrokerProbes
    clock: Clock
    trail: AuditTrail


Context = RequestContext[Services]


def handle(
    request: OffsetCommitRequest, context: Context
) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
    """One code for each offset."""
    offsets: dict[Place, OffsetCommitValue] = {}
    if not context.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return _respond(request, _all_of(request), context, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    judged = [(topic, _judge(topic, request, offsets, context)) for topic in request.topics]
    respond = partial(_respond, request, judged, context)
    try:
        group = _group(request, offsets, context)
        size_bytes = _grown(group, offsets, context)
    except KafkaError as error:
        return respond(error.code)
    if not offsets:
        context.services.groups.drop_unused(group)
        return respond(ErrorCode.NONE)
    stored = context.services.groups.commits.store(group, offsets, size_bytes)
    return after(stored, lambda _: respond(ErrorCode.NONE), lambda error: respond(_code_of(error)))


def _all_of(request: OffsetCommitRequest) -> Judged:
    """Every partition, without a code of its own."""
    return [
        (topic, [(each.partition_index, ErrorCode.NONE) for each in topic.partitions])
        for topic in request.topics
    ]


def _group(
    request: OffsetCommitRequest, offsets: dict[Place, OffsetCommitValue], context: Context
) -> Group:
    groups, generation = context.services.groups, request.generation_id_or_member_epoch
    if generation < 0:
        group = groups.find_or_make(request.group_id)
    else:
        known = context.api_version >= NO_GROUP_SINCE_VERSION
        missing = ErrorCode.GROUP_ID_NOT_FOUND if known else ErrorCode.ILLEGAL_GENERATION
        group = groups.require(request.group_id, missing)
    claim = MemberClaim(request.member_id, request.group_instance_id, generation)
    places = [(value.topic_id, place[1]) for place, value in offsets.items()]
    groups.commits.check(group, claim, CommitAsked(context.api_version, places, offsets))
    return group


def _grown(group: Group, offsets: dict[Place, OffsetCommitValue], context: Context) -> int:
    """Growth of the stored bytes; INVALID_COMMIT_OFFSET_SIZE (28) if there is no room."""
    growth = context.services.groups.commits.growth(group, offsets)
    try:
        context.services.groups.check_offsets_room(group, growth)
    except KafkaError:
        context.services.groups.drop_unused(group)
        raise
    return growth[1]


def _judge(
    topic: OffsetCommitRequestTopic,
    request: OffsetCommitRequest,
    offsets: dict[Place, OffsetCommitValue],
    context: Context,
) -> list[tuple[int, int]]:
    """The codes of a topic's partitions; what may be stored goes into `offsets`."""
    try:
        image = _readable(topic, context)
    except KafkaError as error:
        return [(each.partition_index, error.code) for each in topic.partitions]
    codes = []
    for each in topic.partitions:
        code = _code(each, image, context)
        if code == ErrorCode.NONE:
            offsets[image.name, each.partition_index] = _value(each, image, request, context)
        codes.append((each.partition_index, code))
    return codes


def _readable(topic: OffsetCommitRequestTopic, context: Context) -> TopicImage:
    """Finds the topic, if the client may read it; a name that it may not is not looked for."""
    image = context.services.topics.image
    if topic.name:
        context.require(AclOperation.READ, ResourceType.TOPIC, topic.name)
        return topic_of(image, topic.name, topic.topic_id)
    found = topic_of(image, topic.name, topic.topic_id)
    context.require(AclOperation.READ, ResourceType.TOPIC, found.name)
    return found


def _code(each: OffsetCommitRequestPartition, image: TopicImage, context: Context) -> int:
    if image.partition(each.partition_index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    limit = context.services.config.broker_config.offset_metadata_max_bytes
    if len((each.committed_metadata or "").encode()) > limit:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def _value(
    each: OffsetCommitRequestPartition,
    image: TopicImage,
    request: OffsetCommitRequest,
    context: Context,
) -> OffsetCommitValue:
    now_ms, retention_ms = context.services.clock.now_ms(), request.retention_time_ms
    return OffsetCommitValue(
        offset=each.committed_offset,
        leader_epoch=each.committed_leader_epoch,
        metadata=each.committed_metadata or "",
        commit_timestamp=now_ms,
        expire_timestamp=NONE if retention_ms < 0 else min(now_ms + retention_ms, (1 << 63) - 1),
        topic_id=image.topic_id,
    )


def _code_of(error: KafkaError) -> int:
    """As Kafka tells a commit that cannot be written."""
    too_large = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD}
    return ErrorCode.INVALID_COMMIT_OFFSET_SIZE if error.code in too_large else error.code


def _respond(
    request: OffsetCommitRequest, judged: Judged, context: Context, code: int
) -> OffsetCommitResponse:
    """`code` is that of all offsets that were not refused by themselves."""
    context.count_error(code)
    topics = []
    for topic, codes in judged:
        partitions = [
            OffsetCommitResponsePartition(partition_index=index, error_code=own or code)
            for index, own in codes
        ]
        topics.append(
            OffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=partitions
            )
        )
        for _, own in codes:
            if own:
                context.count_error(own)
    response = OffsetCommitResponse(topics=topics)
    if not request.member_id and request.generation_id_or_member_epoch < 0:
        _note(request, response, context)
    return response


def _note(request: OffsetCommitRequest, response: OffsetCommitResponse, context: Context) -> None:
    """Traces commits by clients that are no members: administrators, self-assigned consumers."""
    trail, who = context.services.trail, who_asks(context)
    for topic, answers in zip(request.topics, response.topics, strict=True):
        for asked, each in zip(topic.partitions, answers.partitions, strict=True):
            name = f"{topic.name or topic.topic_id}-{asked.partition_index}"
            detail = f"offset={asked.committed_offset}"
            noted = change(SET_OFFSET, f"{request.group_id} {name}", detail, each)
            trail.added(who, noted, OFFSET_COMMIT)
