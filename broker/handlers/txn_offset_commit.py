"""TxnOffsetCommit: stores how far a group has come, to count when the transaction is committed."""

from typing import NamedTuple

from broker.groups.classic.group import Group, Place
from broker.groups.classic.members import MemberClaim
from broker.groups.coordinator import GroupCoordinator
from broker.groups.pending import bytes_of
from broker.groups.records.classic import OffsetCommitValue
from broker.groups.requests import check_group_id
from broker.runtime.gathering import wait_for
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.runtime.slowly import slowly
from broker.state.state_topic import TransactionalProducer
from broker.topics.names import CONSUMER_OFFSETS
from broker.topics.topic_catalog import TopicCatalog
from broker.transactions.admission import Admission
from broker.transactions.requests import answered_code
from broker.transactions.rules import ProducerClaim
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType
from protocol.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from protocol.errors import ErrorCode, KafkaError
from storage.env import Clock

FENCED_SINCE_VERSION = 2
ABORTABLE_SINCE_VERSION = 4
JOINS_SINCE_VERSION = 5
AT_A_TIME = 500  # offsets that are judged before others have their turn

Codes = dict[Place, int]


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    config: ConfigStore
    groups: GroupCoordinator
    admission: Admission
    probes: BrokerProbes
    clock: Clock


Context = RequestContext[Services]


async def handle(request: TxnOffsetCommitRequest, context: Context) -> TxnOffsetCommitResponse:
    """One code for each offset; those that pass are stored as one batch."""
    try:
        context.require(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        context.require(AclOperation.READ, ResourceType.GROUP, request.group_id)
    except KafkaError as error:
        context.count_error(error.code)
        return _respond(request, dict.fromkeys(_places(request), error.code))
    codes, offsets = await _judged(request, context)
    try:
        await _check_transaction(request, context)
        group = _group(request, offsets, context)
        if offsets:
            await _store(group, offsets, request, context)
    except KafkaError as error:
        code = answered_code(error, context, fenced_since=FENCED_SINCE_VERSION)
        return _respond(request, {place: own or code for place, own in codes.items()})
    for own in codes.values():
        context.count_error(own)
    return _respond(request, codes)


def _places(request: TxnOffsetCommitRequest) -> list[Place]:
    return [
        (topic.name, each.partition_index) for topic in request.topics for each in topic.partitions
    ]


async def _judged(
    request: TxnOffsetCommitRequest, context: Context
) -> tuple[Codes, dict[Place, OffsetCommitValue]]:
    """Error codes by offset, and the values of the offsets without an error."""
    limit = context.services.config.broker_config.offset_metadata_max_bytes
    codes: Codes = {}
    offsets: dict[Place, OffsetCommitValue] = {}
    asked = ((topic.name, each) for topic in request.topics for each in topic.partitions)
    async for name, each in slowly(asked, AT_A_TIME):
        place = name, each.partition_index
        image = context.services.topics.image.topics.get(name)
        codes[place] = ErrorCode.NONE
        if not context.may(AclOperation.READ, ResourceType.TOPIC, name):
            codes[place] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif image is None or image.partition(each.partition_index) is None:
            codes[place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif len((each.committed_metadata or "").encode()) > limit:
            codes[place] = ErrorCode.OFFSET_METADATA_TOO_LARGE
        else:
            offsets[place] = _value(each, context)
            offsets[place].topic_id = image.topic_id
    return codes, offsets


def _value(each: TxnOffsetCommitRequestPartition, context: Context) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=each.committed_offset,
        leader_epoch=each.committed_leader_epoch,
        metadata=each.committed_metadata or "",
        commit_timestamp=context.services.clock.now_ms(),
    )


async def _check_transaction(request: TxnOffsetCommitRequest, context: Context) -> None:
    """The group's offsets take part in the transaction, by themselves from version 5 on."""
    check_group_id(request.group_id)
    groups, admission = context.services.groups, context.services.admission
    groups.check_loaded(request.group_id)
    await groups.topic.make()
    claim = ProducerClaim(request.transactional_id, request.producer_id, request.producer_epoch)
    place = CONSUMER_OFFSETS, groups.topic.index_of(request.group_id)
    joins = context.api_version >= JOINS_SINCE_VERSION
    try:
        if admission.waits(joins=joins):
            for refused in (await admission.admit(claim, [place], joins=joins)).values():
                raise refused
        else:
            admission.check(claim, place)
    except KafkaError as error:
        is_new = error.code == ErrorCode.TRANSACTION_ABORTABLE
        if is_new and context.api_version < ABORTABLE_SINCE_VERSION:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, error.message) from error
        if error.code == ErrorCode.NOT_ENOUGH_REPLICAS:  # as Kafka: to be sent again, here
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, error.message) from error
        raise


def _group(
    request: TxnOffsetCommitRequest,
    offsets: dict[Place, OffsetCommitValue],
    context: Context,
) -> Group:
    groups = context.services.groups
    if request.generation_id < 0:
        group = groups.find_or_make(request.group_id)
    else:
        group = groups.require(request.group_id, ErrorCode.ILLEGAL_GENERATION)
    claim = MemberClaim(request.member_id, request.group_instance_id, request.generation_id)
    groups.transactional_commits.check(group, claim, offsets)
    return group


async def _store(
    group: Group,
    offsets: dict[Place, OffsetCommitValue],
    request: TxnOffsetCommitRequest,
    context: Context,
) -> None:
    transaction = TransactionalProducer(request.producer_id, request.producer_epoch)
    try:
        growth = len(offsets), sum(map(bytes_of, offsets.values()))
        context.services.groups.room.check_offsets(group, growth)
        stored = context.services.groups.transactional_commits.store(group, offsets, transaction)
        await wait_for(stored)
    except KafkaError:
        context.services.groups.drop_unused(group)
        raise


def _respond(request: TxnOffsetCommitRequest, codes: Codes) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=codes[topic.name, each.partition_index],
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
