"""ElectLeaders: the one replica leads already, so no election is needed; in a fleet none helps.

As in Kafka, a request for every partition lists only what changed, so nothing; one that names
partitions receives ELECTION_NOT_NEEDED (84) for each existing one.
"""

from typing import NamedTuple

from broker.partitions.leadership import NOBODY
from broker.partitions.partition import Partition
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.topic_catalog import TopicCatalog
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from protocol.errors import ErrorCode, KafkaError

KINDS = (0, 1)  # preferred replica, unclean
HERE = 0


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    probes: BrokerProbes


Context = RequestContext[Services]


def handle(request: ElectLeadersRequest, context: Context) -> ElectLeadersResponse:
    """One result per named partition; INVALID_REQUEST (42) for a kind nobody knows."""
    kind = request.election_type
    if not context.may(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        return _refused(request, context)
    return ElectLeadersResponse(
        error_code=ErrorCode.NONE if kind in KINDS else ErrorCode.INVALID_REQUEST,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    _elect(topic.topic, each, kind, context) for each in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _refused(request: ElectLeadersRequest, context: Context) -> ElectLeadersResponse:
    """Error of the whole, and of each partition, as Kafka answers."""
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    context.count_error(code)
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(
                        partition_id=each, error_code=code, error_message=code.description
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _elect(topic: str, index: int, kind: int, context: Context) -> PartitionResult:
    try:
        _check_kind(kind)
        _check_led(context.services.topics.image.require(topic, index))
    except KafkaError as error:
        context.count_error(error.code)
        return PartitionResult(
            partition_id=index, error_code=error.code, error_message=error.message
        )
    code = ErrorCode.ELECTION_NOT_NEEDED
    return PartitionResult(partition_id=index, error_code=code, error_message=code.description)


def _check_led(partition: Partition) -> None:
    if partition.leader_or(HERE) == NOBODY:
        text = "Nobody leads it for the moment: the next owner of its shard will"
        raise KafkaError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, text)


def _check_kind(kind: int) -> None:
    if kind not in KINDS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {kind}")
