"""AlterPartitionReassignments: a replica stays where it is, and nothing else can be asked for.

A list that names the leader alone is what a partition has, so it is done when it is asked for. Any
other broker is unknown, or in a fleet one that gets shards and no single partitions; a move that
could be cancelled never goes on. Rules and texts as in Kafka's controller.
"""

from collections.abc import Container, Sequence
from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.server.endpoints import AdvertisedEndpoints
from broker.topics.topic_catalog import TopicCatalog
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from protocol.errors import ErrorCode, KafkaError


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    probes: BrokerProbes
    node_id: int
    endpoints: AdvertisedEndpoints


Context = RequestContext[Services]


def handle(
    request: AlterPartitionReassignmentsRequest, context: Context
) -> AlterPartitionReassignmentsResponse:
    """One result per partition, or one error for all."""
    if not context.may(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        context.count_error(code)
        return _refused(request, code)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[_reassign(topic.name, each, context) for each in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def _refused(
    request: AlterPartitionReassignmentsRequest, code: ErrorCode
) -> AlterPartitionReassignmentsResponse:
    """Error of the whole, and of each partition, as Kafka answers."""
    return AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=code.description,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index,
                        error_code=code,
                        error_message=code.description,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _reassign(
    topic: str, wanted: ReassignablePartition, context: Context
) -> ReassignablePartitionResponse:
    answer = ReassignablePartitionResponse(partition_index=wanted.partition_index)
    try:
        partition = context.services.topics.image.require(topic, wanted.partition_index)
        services = context.services
        others = services.endpoints.others_of(context.peer)
        _check_replicas(wanted.replicas, partition.leader_or(services.node_id), others)
    except KafkaError as error:
        context.count_error(error.code)
        answer.error_code, answer.error_message = error.code, error.message
    return answer


def _check_replicas(replicas: Sequence[int] | None, leader_id: int, others: Container[int]) -> None:
    """Raises the error for anything but the one assignment that is possible."""
    if replicas is None:
        code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        raise KafkaError(code, code.description)
    if not replicas:
        raise _invalid("includes an empty replica list")
    for replica in sorted(replicas):
        if replica != leader_id and replica in others:
            raise _invalid(
                f"includes broker {replica}, but brokers of a fleet lead whole shards: see "
                "`horolog fleet drain`"
            )
        if replica != leader_id:
            raise _invalid(f"includes broker {replica}, but no such broker is registered")
    if len(replicas) > 1:
        raise _invalid(f"includes the broker {leader_id} more than once")


def _invalid(what: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {what}."
    )
