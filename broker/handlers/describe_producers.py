"""DescribeProducers: who writes to a partition, as far as the log remembers (KIP-664)."""

from functools import partial
from typing import NamedTuple

from broker.partitions.partition import Partition
from broker.runtime.answers import AnswerRoom
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after, gather
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.names import check_name
from broker.topics.topic_catalog import TopicCatalog
from protocol.acls import AclOperation, ResourceType
from protocol.apis.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from protocol.errors import KafkaError

Answer = PartitionResponse | Deferred[PartitionResponse]


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    probes: BrokerProbes


Context = RequestContext[Services]


def handle(
    request: DescribeProducersRequest, context: Context
) -> DescribeProducersResponse | Deferred[DescribeProducersResponse]:
    """The remembered producers of each partition, idle ones too until they expire.

    Partitions that are named twice are described once.
    """
    context.asks(AclOperation.READ, ResourceType.TOPIC)
    room = AnswerRoom()
    request.topics = _once(request.topics)
    answers = [
        _describe(topic.name, index, context, room)
        for topic in request.topics
        for index in topic.partition_indexes
    ]
    return gather(answers, partial(_respond, request))


def _once(topics: list[TopicRequest]) -> list[TopicRequest]:
    indexes: dict[str, dict[int, None]] = {}
    for each in topics:
        indexes.setdefault(each.name, {}).update(dict.fromkeys(each.partition_indexes))
    return [TopicRequest(name=name, partition_indexes=list(of)) for name, of in indexes.items()]


def _describe(name: str, index: int, context: Context, room: AnswerRoom) -> Answer:
    refuse = partial(_refusal, index, context)
    try:
        check_name(name)
        context.require(AclOperation.READ, ResourceType.TOPIC, name)
        partition = context.services.topics.image.require(name, index)
        partition.check_leads()
        room.take(1 + len(partition.log.producers))
    except KafkaError as error:
        return refuse(error)
    producers = partition.writer.in_turn(partial(_states, partition))  # a lane may be appending
    return after(producers, partial(_success, index), refuse)


def _states(partition: Partition) -> list[ProducerState]:
    return [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=entry.epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.last_timestamp,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=entry.txn_first_offset,
        )
        for producer_id, entry in partition.log.producers
    ]


def _success(index: int, producers: list[ProducerState]) -> PartitionResponse:
    return PartitionResponse(partition_index=index, active_producers=producers)


def _refusal(index: int, context: Context, error: KafkaError) -> PartitionResponse:
    context.count_error(error.code)
    return PartitionResponse(
        partition_index=index, error_code=error.code, error_message=error.message
    )


def _respond(
    request: DescribeProducersRequest, answers: list[PartitionResponse]
) -> DescribeProducersResponse:
    rest = iter(answers)
    return DescribeProducersResponse(
        topics=[
            TopicResponse(name=topic.name, partitions=[next(rest) for _ in topic.partition_indexes])
            for topic in request.topics
        ]
    )
