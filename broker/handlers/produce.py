"""Produce: checks what the request may do, appends, and answers per partition.

One partition is the hot path: no gathering, no coroutine. acks=0 has no answer; when
it goes wrong the connection closes, which is all that such a client can notice (Kafka's rule).
What belongs to a transaction goes through `transactions/producing.py` first.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, overload
from uuid import UUID

from broker.guards.admission import Intake
from broker.partitions.fetch_waiters import FetchWaiters
from broker.partitions.partition import ACKS_ALL, Partition, skipped_at_a_new_leader
from broker.record_times.audit_stream import AuditStream
from broker.record_times.offenders import DirtyClients
from broker.runtime.connection_limits import CloseConnection
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after, gather
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.runtime.rights import MARKS, Rights
from broker.server.endpoints import AdvertisedEndpoints
from broker.topics.metadata_image import MetadataImage
from broker.topics.names import check_not_internal
from broker.topics.topic_catalog import TopicCatalog
from broker.transactions import producing
from broker.transactions.admission import Admission
from protocol.acls import AclOperation, ResourceType
from protocol.apis.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import LENGTH_ENDS
from protocol.records.faults import encode_faults
from storage.old_formats.up_conversion import is_old_set
from storage.segment.log_snapshot import AppendResult
from storage.validation.batch_rules import InvalidRecordError
from storage.validation.dirty_timestamps import RecordFaults

ACKS = (-1, 0, 1)
STORAGE_ERROR_SINCE_VERSION = 4
ZSTD = 4
FORMAT_2_SINCE_VERSION = 3
ZSTD_SINCE_VERSION = 7
TOPIC_IDS_SINCE_VERSION = 13
MAGIC_POSITION = 16
MAGIC_V2 = 2
ATTRIBUTES_POSITION = 22  # low byte of the attributes of a batch v2
CODEC_BITS = 0x07
TRANSACTIONAL_BIT = 0x10
WRITE_TOPIC = MARKS[ResourceType.TOPIC][AclOperation.WRITE]

Answer = PartitionProduceResponse | Deferred[PartitionProduceResponse]


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    admission: Admission
    probes: BrokerProbes
    waiters: FetchWaiters
    dirty_clients: DirtyClients
    audit: AuditStream | None
    intake: Intake
    endpoints: AdvertisedEndpoints


Context = RequestContext[Services]


def handle(request: ProduceRequest, context: Context) -> producing.Answer:
    """Appends every batch of the request; the response follows the request's order."""
    if context.peer.rights is not None:
        if not request.topic_data:
            context.asks(AclOperation.WRITE, ResourceType.TOPIC)
        if _has_transactional(request) and not _may_transact(request, context):
            return _refuse_all(request, context)
    if request.transactional_id is not None:
        return producing.produce(request, context, _find, _append)
    return _append(request, context, {})


def _has_transactional(request: ProduceRequest) -> bool:
    """True when some batch takes part in a transaction, as far as two bytes of it say so."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            batch = data.records
            if (
                batch is not None
                and len(batch) > ATTRIBUTES_POSITION
                and batch[ATTRIBUTES_POSITION] & TRANSACTIONAL_BIT
                and batch[MAGIC_POSITION] == MAGIC_V2
            ):
                return True
    return False


def _may_transact(request: ProduceRequest, context: Context) -> bool:
    name = request.transactional_id
    return name is not None and context.may(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name)


def _refuse_all(request: ProduceRequest, context: Context) -> ProduceResponse | None:
    error = KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    answers = [
        _refusal(data.index, error, None, context)
        for topic in request.topic_data
        for data in topic.partition_data
    ]
    return _respond(request, context, answers)


def _append(
    request: ProduceRequest, context: Context, refused: producing.Refused
) -> producing.Appended:
    answers = [
        _produce(topic, data, request, context, refused)
        for topic in request.topic_data
        for data in topic.partition_data
    ]
    context.services.waiters.answer_woken()
    if len(answers) == 1 and not isinstance(answers[0], Deferred):
        return _respond(request, context, [answers[0]])
    return gather(answers, partial(_respond, request, context))


def _produce(
    topic: TopicProduceData,
    data: PartitionProduceData,
    request: ProduceRequest,
    context: Context,
    refused: producing.Refused,
) -> Answer:
    partition, services = None, context.services
    try:
        if request.acks not in ACKS:
            raise _unknown_acks(request.acks)
        if refused and id(data) in refused:
            raise refused[id(data)]
        partition = _find(topic, data, context)
        records = _checked_records(data, request, context.api_version)
        check_not_internal(partition.log.topic, services.topics.internal_topics)
        if request.acks == ACKS_ALL:
            _check_replicas(partition)
        size_bytes = len(records)
        if services.intake.is_guarded:
            services.intake.admit(size_bytes)
        if context.api_version < FORMAT_2_SINCE_VERSION and is_old_set(records):
            result = partition.writer.append_old(records, request.acks, context)
        else:
            result = partition.writer.append(records, request.acks, context)
    except KafkaError as error:
        return _refusal(data.index, error, partition, context)
    if isinstance(result, Deferred):
        return after(
            result,
            partial(_success, data.index, size_bytes, partition, context),
            lambda error: _refusal(data.index, error, partition, context),
        )
    return _success(data.index, size_bytes, partition, context, result)


def _unknown_acks(acks: int) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks must be -1, 0 or 1, not {acks}")


def _find(topic: TopicProduceData, data: PartitionProduceData, context: Context) -> Partition:
    image, by_id = context.services.topics.image, context.api_version >= TOPIC_IDS_SINCE_VERSION
    rights = context.peer.rights
    if rights is not None:
        context.asked = context.asked | WRITE_TOPIC if context.asked else WRITE_TOPIC
        name = _name_of(topic.topic_id, image) if by_id else topic.name
        if name not in rights.granted.get(WRITE_TOPIC, ()):
            _check_right(name, rights, context)
    if by_id:
        return image.require_by_id(topic.topic_id, data.index)
    return image.require(topic.name, data.index)


def _name_of(topic_id: UUID, image: MetadataImage) -> str | None:
    """None for an id that no topic has."""
    found = image.by_id.get(topic_id)
    return None if found is None else found.name


def _check_right(name: str | None, rights: Rights, context: Context) -> None:
    """Comes before the look for the topic, so that a hidden one looks like a missing one."""
    if name is not None and not rights.may(WRITE_TOPIC, name):
        rights.denied(WRITE_TOPIC, name, context)
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _is_whole(records: memoryview) -> bool:
    """True when the batch is whole; else the client receives that fault first."""
    return len(records) >= LENGTH_ENDS + int.from_bytes(records[LENGTH_ENDS - 4 : LENGTH_ENDS])


def _checked_records(
    data: PartitionProduceData, request: ProduceRequest, version: int
) -> memoryview:
    """The records, checked as far as one byte of the batch allows; the log checks the rest."""
    records: memoryview | None = data.records
    data.records = None  # a waiting answer must not hold the request's bytes
    if not records:
        raise KafkaError(ErrorCode.INVALID_RECORD, "The request holds no records")
    if len(records) > ATTRIBUTES_POSITION and records[MAGIC_POSITION] == MAGIC_V2:
        attributes = records[ATTRIBUTES_POSITION]
        if attributes & CODEC_BITS == ZSTD and version < ZSTD_SINCE_VERSION and _is_whole(records):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7 or later"
            )
        if attributes & TRANSACTIONAL_BIT and request.transactional_id is None:
            raise KafkaError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "A transactional batch needs a transactional id in its request",
            )
    return records


def _check_replicas(partition: Partition) -> None:
    """In a fleet copies are the affair of its engines, whatever a topic asks for."""
    if partition.leadership is None and partition.log.config.min_insync_replicas > 1:
        raise KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS, "min.insync.replicas is above 1: this broker is alone"
        )


def _success(
    index: int,
    size_bytes: int,
    partition: Partition,
    context: Context,
    result: AppendResult,
) -> PartitionProduceResponse:
    services = context.services
    if not result.duplicate:
        count = result.last_offset - result.base_offset + 1
        dirty = result.dirty
        if dirty is not None:
            count -= dirty.set_aside
            services.dirty_clients.found(partition.log, dirty, result.base_offset, context)
        services.probes.appended(partition.topic, size_bytes, count, result.skew_ms)
        audit = services.audit
        if audit is not None:
            audit.stored(partition, context, result, count, size_bytes)
    return PartitionProduceResponse(
        index=index,
        base_offset=result.base_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
    )


def _refusal(
    index: int, error: KafkaError, partition: Partition | None, context: Context
) -> PartitionProduceResponse:
    if partition is not None:
        error = skipped_at_a_new_leader(error, partition, context.services.probes.monotonic())
        context.services.probes.append_failed(partition.topic)
    context.count_error(error.code)
    code = error.code
    if code == ErrorCode.KAFKA_STORAGE_ERROR and context.api_version < STORAGE_ERROR_SINCE_VERSION:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    start = partition.log.snapshot.log_start_offset if partition is not None else -1
    record_errors: Sequence[BatchIndexAndErrorMessage] = []
    if isinstance(error, InvalidRecordError):
        record_errors = ListedFaults(error.record_errors)
        if error.dirty is not None and partition is not None:
            context.services.dirty_clients.found(partition.log, error.dirty, None, context)
            if context.services.audit is not None:
                context.services.audit.refused(partition, context, error.dirty)
    return PartitionProduceResponse(
        index=index,
        error_code=code,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=start,
        record_errors=record_errors,
        error_message=error.message,
        current_leader=_leader_elsewhere(partition),
    )


class ListedFaults(Sequence[BatchIndexAndErrorMessage]):
    """The bad records of a batch as the answer lists them, all at once where that is possible."""

    __slots__ = ("_faults",)

    def __init__(self, faults: Sequence[tuple[int, str]]) -> None:
        """Nothing is written before the answer is."""
        self._faults = faults

    def __len__(self) -> int:
        return len(self._faults)

    @overload
    def __getitem__(self, place: int) -> BatchIndexAndErrorMessage: ...
    @overload
    def __getitem__(self, place: slice) -> list[BatchIndexAndErrorMessage]: ...
    def __getitem__(
        self, place: int | slice
    ) -> BatchIndexAndErrorMessage | list[BatchIndexAndErrorMessage]:
        """One of them, for who wants them so."""
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        at, text = self._faults[place]
        return BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=text)

    def packed(self, *, compact: bool) -> memoryview | None:
        """The bytes of all elements, if they are to be had at once."""
        faults = self._faults
        if not isinstance(faults, RecordFaults):
            return None
        return encode_faults(faults.rows, faults.texts, compact)


def _respond(
    request: ProduceRequest, context: Context, answers: list[PartitionProduceResponse]
) -> ProduceResponse | None:
    if request.acks == 0:
        _close_on_error(answers)
        return None
    responses = []
    start = 0
    for topic in request.topic_data:
        end = start + len(topic.partition_data)
        responses.append(
            TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=answers[start:end]
            )
        )
        start = end
    response = ProduceResponse(responses=responses)
    if context.services.endpoints.others:
        others = context.services.endpoints.others_of(context.peer)
        leaders = {each.current_leader.leader_id for each in answers if each.current_leader}
        response.node_endpoints = [
            NodeEndpoint(node_id=node_id, host=others[node_id].host, port=others[node_id].port)
            for node_id in sorted(leaders & others.keys())
        ]
    return response


def _leader_elsewhere(partition: Partition | None) -> LeaderIdAndEpoch | None:
    """For clients that know KIP-951: they need not ask for metadata first."""
    leader = None if partition is None else partition.leader_elsewhere
    if leader is None:
        return None
    return LeaderIdAndEpoch(leader_id=leader.node_id, leader_epoch=leader.epoch)


def _close_on_error(answers: list[PartitionProduceResponse]) -> None:
    for answer in answers:
        if answer.error_code:
            raise CloseConnection("acks_zero_error", answer.error_message or "")
