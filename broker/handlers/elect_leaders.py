"""ElectLeaders: the one replica leads already, so no election is needed.

As in Kafka, a request for every partition lists only what changed, so nothing; one that names
partitions is told ELECTION_NOT_NEEDED (84) for each that is here.
"""

from broker.context import RequestContext
from protocol.apis.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from protocol.errors import ErrorCode, KafkaError

PREFERRED, UNCLEAN = 0, 1


def handle(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    """One result per named partition; INVALID_REQUEST (42) for a kind nobody knows."""
    if request.election_type not in {PREFERRED, UNCLEAN}:
        context.count_error(ErrorCode.INVALID_REQUEST)
        return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST)
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[_elect(topic.topic, each, context) for each in topic.partitions],
            )
            for topic in request.topic_partitions or ()
        ]
    )


def _elect(topic: str, index: int, context: RequestContext) -> PartitionResult:
    try:
        context.broker.catalog.image.require(topic, index)
    except KafkaError as error:
        context.count_error(error.code)
        return PartitionResult(
            partition_id=index, error_code=error.code, error_message=error.message
        )
    code = ErrorCode.ELECTION_NOT_NEEDED
    return PartitionResult(partition_id=index, error_code=code, error_message=code.description)
