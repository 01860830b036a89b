"""AlterPartitionReassignments: one broker can keep a replica where it is, and nothing else.

A list that names this broker alone is what every partition has, so it is done when it is asked
for. Any other broker is unknown; a move that could be cancelled never goes on. Rules and texts as
in Kafka's controller.
"""

from collections.abc import Sequence
from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
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
        context.services.topics.image.require(topic, wanted.partition_index)
        _check_replicas(wanted.replicas, context.services.node_id)
    except KafkaError as error:
        context.count_error(error.code)
        answer.error_code, answer.error_message = error.code, error.message
    return answer


def _check_replicas(replicas: Sequence[int] | None, node_id: int) -> None:
    """Raises the error for anything but the one assignment that is possible."""
    if replicas is None:
        code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        raise KafkaError(code, code.description)
    if not replicas:
        raise _invalid("includes an empty replica list")
    for replica in sorted(replicas):
        if replica != node_id:
            raise _invalid(f"includes broker {replica}, but no such broker is registered")
    if len(replicas) > 1:
        raise _invalid(f"includes the broker {node_id} more than once")


def _invalid(what: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {what}."
    )
