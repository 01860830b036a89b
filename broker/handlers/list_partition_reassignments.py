"""ListPartitionReassignments: nothing is ever being moved: brokers of a fleet move whole shards."""

from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingTopicReassignment,
)
from protocol.errors import ErrorCode


class Services(NamedTuple):
    """The services that the answer is made with."""

    probes: BrokerProbes


Context = RequestContext[Services]


def handle(
    request: ListPartitionReassignmentsRequest,
    context: Context,
) -> ListPartitionReassignmentsResponse:
    """No partition; as in Kafka, topics that are not there are no mistake."""
    if not context.may(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        context.count_error(code)
        named = [OngoingTopicReassignment(name=each.name) for each in request.topics or ()]
        return ListPartitionReassignmentsResponse(
            error_code=code, error_message=code.description, topics=named
        )
    return ListPartitionReassignmentsResponse()
