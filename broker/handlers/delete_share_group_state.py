"""DeleteShareGroupState: forgets share partitions."""

from typing import NamedTuple

from broker.runtime.deferred import Deferred
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.share.state.coordinator import ShareCoordinator
from broker.share.state.key import ShareKey
from broker.share.state.requests import Shape, answered, no_fields
from protocol.apis.delete_share_group_state import (
    DeleteShareGroupStatePartition,
    DeleteShareGroupStatePartitionResult,
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteShareGroupStateTopicResult,
)


class Services(NamedTuple):
    """The services that the answer is made with."""

    share_states: ShareCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]

SHAPE = Shape(
    DeleteShareGroupStateResponse,
    DeleteShareGroupStateTopicResult,
    DeleteShareGroupStatePartitionResult,
)


def handle(
    request: DeleteShareGroupStateRequest, context: Context
) -> DeleteShareGroupStateResponse | Deferred[DeleteShareGroupStateResponse]:
    """A code for each share partition, durable when it is 0."""
    states = context.services.share_states

    def ask(key: ShareKey, _: DeleteShareGroupStatePartition) -> Deferred[None]:
        return states.delete(key)

    response: DeleteShareGroupStateResponse | Deferred[DeleteShareGroupStateResponse]
    response = answered(request, context, SHAPE, ask, no_fields)
    return response
