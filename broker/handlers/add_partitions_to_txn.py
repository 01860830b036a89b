"""AddPartitionsToTxn: partitions join the transaction, all or none of them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.topic_catalog import TopicCatalog
from broker.transactions.coordinator import TransactionCoordinator
from broker.transactions.requests import answered_code, code_of_place, places_of
from broker.transactions.rules import ProducerClaim
from broker.transactions.transaction import Place
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from protocol.errors import ErrorCode, KafkaError

FENCED_SINCE_VERSION = 2
MANY_SINCE_VERSION = 4
ABORTABLE_SINCE_VERSION = 5
AT_ONCE = 100
"""Transactions of other brokers."""

Codes = dict[Place, int]


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    transactions: TransactionCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]


async def handle(
    request: AddPartitionsToTxnRequest, context: Context
) -> AddPartitionsToTxnResponse:
    """One code for each partition, durable when it is 0."""
    if context.api_version < MANY_SINCE_VERSION:
        context.asks(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID)
        claim = ProducerClaim(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
        )
        topics = request.v3_and_below_topics
        codes = await _join_asked(claim, places_of(topics), context)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(topics, codes))
    if not context.may(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        context.count_error(code)
        return AddPartitionsToTxnResponse(error_code=code)
    results = list[AddPartitionsToTxnResult]()
    for at in range(0, len(request.transactions), AT_ONCE):
        some = request.transactions[at : at + AT_ONCE]
        results += await asyncio.gather(*(_one_of_many(each, context) for each in some))
    return AddPartitionsToTxnResponse(results_by_transaction=results)


async def _one_of_many(
    each: AddPartitionsToTxnTransaction, context: Context
) -> AddPartitionsToTxnResult:
    claim = ProducerClaim(each.transactional_id, each.producer_id, each.producer_epoch)
    places = places_of(each.topics)
    if each.verify_only:
        codes = {place: _code_of_member(claim, place, context) for place in places}
    else:
        codes = await _join_of_leader(claim, places, context)
    return AddPartitionsToTxnResult(
        transactional_id=each.transactional_id, topic_results=_results(each.topics, codes)
    )


async def _join_asked(claim: ProducerClaim, places: list[Place], context: Context) -> Codes:
    """As `_join`, for a client; between brokers nobody asks for the rights of one.

    Nobody has the right to write to a topic of the broker's own (Kafka's rule).
    """
    name = claim.transactional_id
    if not context.may(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        context.count_error(code)
        return dict.fromkeys(places, code)
    internal = context.services.topics.internal_topics
    denied = [
        place
        for place in places
        if place[0] in internal or not context.may(AclOperation.WRITE, ResourceType.TOPIC, place[0])
    ]
    if not denied:
        return await _join(claim, places, context)
    context.count_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    codes = {place: code_of_place(place, context.services.topics) for place in places}
    codes.update(dict.fromkeys(denied, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    return {place: code or ErrorCode.OPERATION_NOT_ATTEMPTED for place, code in codes.items()}


async def _join(claim: ProducerClaim, places: list[Place], context: Context) -> Codes:
    codes = {place: code_of_place(place, context.services.topics) for place in places}
    joins = context.services.transactions.join
    return await _joined(codes, context, lambda: joins(claim, places))


async def _join_of_leader(claim: ProducerClaim, places: list[Place], context: Context) -> Codes:
    """For another broker, whose partitions of offsets join, too (KIP-890)."""
    image = context.services.topics.image
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    codes = {each: ErrorCode.NONE if image.partition(*each) else unknown for each in places}
    joins = context.services.transactions.join_soon
    return await _joined(codes, context, lambda: joins(claim, places))


async def _joined(
    codes: Mapping[Place, int], context: Context, join: Callable[[], Awaitable[None]]
) -> Codes:
    if any(codes.values()):
        for code in codes.values():
            context.count_error(code)
        return {place: code or ErrorCode.OPERATION_NOT_ATTEMPTED for place, code in codes.items()}
    try:
        await join()
    except KafkaError as error:
        code = answered_code(error, context, fenced_since=FENCED_SINCE_VERSION)
        return dict.fromkeys(codes, code)
    return dict(codes)


def _code_of_member(claim: ProducerClaim, place: Place, context: Context) -> int:
    try:
        context.services.transactions.check_joined(claim, place)
    except KafkaError as error:
        is_new = error.code == ErrorCode.TRANSACTION_ABORTABLE
        if is_new and context.api_version < ABORTABLE_SINCE_VERSION:
            error = KafkaError(ErrorCode.INVALID_TXN_STATE, error.message)
        return answered_code(error, context, fenced_since=FENCED_SINCE_VERSION)
    return ErrorCode.NONE


def _results(
    topics: list[AddPartitionsToTxnTopic], codes: Codes
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=codes[topic.name, index]
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
