"""ListPartitionReassignments: nothing is ever being moved, for there is nowhere to move it to."""

from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from protocol.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


class Services(NamedTuple):
    """The services that the answer is made with."""

    probes: BrokerProbes


Context = RequestContext[Services]


def handle(
    request: ListPartitionReassignmentsRequest,  # noqa: ARG001 - the answer is the same for all
    context: Context,  # noqa: ARG001
) -> ListPartitionReassignmentsResponse:
    """No partition; as in Kafka, topics that are not there are no mistake."""
    return ListPartitionReassignmentsResponse()
