"""Checks of a Produce request with a transactional id before its batches may be appended.

A partition that already holds records of the open transaction needs nothing more. Any other must
take part in it: older clients have added it at the coordinator, and are refused otherwise; from
Produce version 12 on partitions join by themselves (KIP-890), which waits for the disk. In a fleet
its rows are asked. Requests of one producer keep their order: while one waits, those behind it
wait, too.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from struct import Struct
from typing import Any, NamedTuple, Protocol

from broker.partitions.partition import Partition, skipped_at_a_new_leader
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import wait_for
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.topic_catalog import TopicCatalog
from broker.transactions.admission import Admission, Queue
from broker.transactions.requests import code_of_place
from broker.transactions.rules import ProducerClaim
from broker.transactions.transaction import Place
from protocol.apis.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import HEADER_BYTES, TRANSACTIONAL

JOINS_SINCE_VERSION = 12
ABORTABLE_SINCE_VERSION = 11
_ATTRIBUTES_POSITION = 22  # their low byte
_PRODUCER_POSITION = 43
_PRODUCER = Struct(">qhi")  # id, epoch, base sequence

_MUST_BEGIN_WITH_0 = KafkaError(
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    "A producer unknown to the partition must begin with sequence 0",
)
_COMES_AGAIN = KafkaError(
    ErrorCode.NOT_ENOUGH_REPLICAS, "A batch before this one was refused, and comes again first"
)


class ProducingServices(Protocol):
    """The services that partitions join a transaction with."""

    @property
    def probes(self) -> BrokerProbes:
        """The counters."""

    @property
    def topics(self) -> TopicCatalog:
        """The partitions that may join."""

    @property
    def admission(self) -> Admission:
        """Says which partitions take part in a transaction."""


Producing = RequestContext[ProducingServices]
"""Context of the request."""
Refused = Mapping[int, KafkaError]
"""Errors of batches that are not appended, by the identity of their part of the request."""
Find = Callable[[TopicProduceData, PartitionProduceData, RequestContext[Any]], Partition]
Appended = ProduceResponse | Deferred[ProduceResponse | None] | None
Append = Callable[[ProduceRequest, RequestContext[Any], Refused], Appended]
Answer = Appended | Awaitable[ProduceResponse | None]


class _Entrant(NamedTuple):
    """A batch of a transaction, on its way into a partition that has none of it yet."""

    key: int
    claim: ProducerClaim
    place: Place
    base_sequence: int


def produce(request: ProduceRequest, context: Producing, find: Find, append: Append) -> Answer:
    """Appends what may be appended, at once or when the partitions have joined."""
    entrants = list(_entrants(request, context, find))
    admission = context.services.admission
    queue = admission.queue(request.transactional_id or "")
    waits = admission.waits(joins=context.api_version >= JOINS_SINCE_VERSION)
    if waits and (entrants or (queue is not None and queue.entering)):
        for topic in request.topic_data:
            for data in topic.partition_data:  # the request's bytes do not outlive this call
                data.records = memoryview(bytearray(data.records or b""))
        if queue is not None:
            queue.entering += 1  # from now on: others may come before this one goes on
        return _in_order(queue, _join_and_append(request, context, entrants, append))
    return append(request, context, {each.key: error for each, error in _strays(entrants, context)})


def _entrants(request: ProduceRequest, context: Producing, find: Find) -> Iterator[_Entrant]:
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if records is None or len(records) < HEADER_BYTES:
                continue
            if not records[_ATTRIBUTES_POSITION] & TRANSACTIONAL:
                continue
            try:
                partition = find(topic, data, context)
                partition.check_leads()
            except KafkaError:
                continue  # the append will say so
            producer_id, epoch, sequence = _PRODUCER.unpack_from(records, _PRODUCER_POSITION)
            known = partition.log.producers.get(producer_id)
            if known is not None and known.epoch == epoch and known.has_open_transaction:
                continue
            claim = ProducerClaim(request.transactional_id or "", producer_id, epoch)
            place = partition.topic, partition.index
            yield _Entrant(id(data), claim, place, sequence)


def _strays(entrants: list[_Entrant], context: Producing) -> Iterator[tuple[_Entrant, KafkaError]]:
    """Batches for partitions that have not joined, with the error for older clients."""
    for each in entrants:
        try:
            context.services.admission.check(each.claim, each.place)
        except KafkaError as error:
            yield each, _as_answered(error, context)


async def _in_order(queue: Queue | None, appended: Awaitable[Appended]) -> ProduceResponse | None:
    try:
        answer = await appended
    finally:
        if queue is not None:
            queue.entering -= 1
    return await wait_for(answer) if isinstance(answer, Deferred) else answer


async def _join_and_append(
    request: ProduceRequest,
    context: Producing,
    entrants: list[_Entrant],
    append: Append,
) -> Appended:
    try:
        refused = await _not_joined(request, context, entrants)
        for each in entrants:
            if each.key not in refused and (error := _lost(each, context)) is not None:
                refused[each.key] = error
        return append(request, context, refused)
    finally:
        if context.api_version < JOINS_SINCE_VERSION:
            for each in entrants:
                _remember(each, context)


async def _not_joined(
    request: ProduceRequest, context: Producing, entrants: list[_Entrant]
) -> dict[int, KafkaError]:
    """Waits until the others have joined."""
    admission = context.services.admission
    refused: dict[int, KafkaError] = {}
    claims = {each.claim for each in entrants}
    if not claims:
        await admission.wait_for_turn(request.transactional_id or "")
    for claim in claims:
        joining = [each for each in entrants if each.claim == claim]
        joins = context.api_version >= JOINS_SINCE_VERSION
        places = _places(joining, refused, context)
        errors = await admission.admit(claim, places, joins=joins)
        for each in joining:
            if each.place in errors:
                refused.setdefault(each.key, _as_answered(errors[each.place], context))
    return refused


def _places(
    entrants: list[_Entrant],
    refused: dict[int, KafkaError],
    context: Producing,
) -> list[Place]:
    """Partitions of the batches that may be appended."""
    places = []
    for each in entrants:
        code = code_of_place(each.place, context.services.topics)
        if code == ErrorCode.NONE:
            places.append(each.place)
        else:
            refused[each.key] = KafkaError(ErrorCode(code))
    return places


def _lost(entrant: _Entrant, context: Producing) -> KafkaError | None:
    """The error when a batch before it is missing: the partition does not know the producer.

    Judged when the ones before it have been appended, unless they still wait for a lane; and by
    what leads now, since a partition may have moved meanwhile. By version 1 of transactions one
    that was forgotten goes on with any sequence: of a batch of it that is missing one knows where
    it was refused here, and at a leader so new that another may have refused it.
    """
    partition = context.services.topics.image.partition(*entrant.place)
    if partition is None or partition.leader_elsewhere is not None:
        return None  # the append will say so
    is_unknown = _is_unknown(entrant, partition)
    if not is_unknown or not entrant.base_sequence or partition.writer.is_writing:
        return None
    now = context.services.probes.monotonic()
    error = skipped_at_a_new_leader(_MUST_BEGIN_WITH_0, partition, now)
    if error is not _MUST_BEGIN_WITH_0 or context.api_version >= JOINS_SINCE_VERSION:
        return error
    first = context.services.admission.first_batches
    is_behind = first.is_behind(entrant.claim, entrant.place, entrant.base_sequence, now)
    return _COMES_AGAIN if is_behind else None


def _is_unknown(entrant: _Entrant, partition: Partition) -> bool:
    known = partition.log.producers.get(entrant.claim.producer_id)
    return known is None or known.has_unknown_sequence


def _remember(entrant: _Entrant, context: Producing) -> None:
    """Notes for those behind it if the partition has taken it."""
    partition = context.services.topics.image.partition(*entrant.place)
    if partition is None or partition.leader_elsewhere is not None:
        return
    first, now = context.services.admission.first_batches, context.services.probes.monotonic()
    if _is_unknown(entrant, partition):
        first.refused(entrant.claim, entrant.place, entrant.base_sequence, now)
    else:
        first.taken(entrant.claim, entrant.place)


def _as_answered(error: KafkaError, context: Producing) -> KafkaError:
    """Turns the coordinator's error into that of Kafka's leader."""
    match error.code:
        case ErrorCode.PRODUCER_FENCED:
            return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message)
        case ErrorCode.TRANSACTION_ABORTABLE if context.api_version < ABORTABLE_SINCE_VERSION:
            return KafkaError(ErrorCode.INVALID_TXN_STATE, error.message)
        case ErrorCode.CONCURRENT_TRANSACTIONS if context.api_version >= JOINS_SINCE_VERSION:
            return error
        case (
            ErrorCode.CONCURRENT_TRANSACTIONS
            | ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            | ErrorCode.COORDINATOR_NOT_AVAILABLE
            | ErrorCode.NOT_COORDINATOR
        ):
            return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, error.message)
        case _:
            return error
