"""ListPartitionReassignments: nothing is ever being moved, for there is nowhere to move it to."""

from broker.requests.services import HandlerContext
from protocol.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(
    request: ListPartitionReassignmentsRequest,  # noqa: ARG001 - the answer is the same for all
    context: HandlerContext,  # noqa: ARG001
) -> ListPartitionReassignmentsResponse:
    """No partition; as in Kafka, topics that are not there are no mistake."""
    return ListPartitionReassignmentsResponse()
