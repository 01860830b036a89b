"""InitializeShareGroupState: begins what is remembered of share partitions."""

from typing import NamedTuple

from broker.runtime.deferred import Deferred
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.share.state.coordinator import ShareCoordinator
from broker.share.state.key import ShareKey
from broker.share.state.requests import Shape, answered, no_fields
from protocol.apis.initialize_share_group_state import (
    InitializeShareGroupStatePartition,
    InitializeShareGroupStatePartitionResult,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeShareGroupStateTopicResult,
)


class Services(NamedTuple):
    """The services that the answer is made with."""

    share_states: ShareCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]

SHAPE = Shape(
    InitializeShareGroupStateResponse,
    InitializeShareGroupStateTopicResult,
    InitializeShareGroupStatePartitionResult,
)


def handle(
    request: InitializeShareGroupStateRequest, context: Context
) -> InitializeShareGroupStateResponse | Deferred[InitializeShareGroupStateResponse]:
    """A code for each share partition, durable when it is 0."""
    states = context.services.share_states

    def ask(key: ShareKey, wanted: InitializeShareGroupStatePartition) -> Deferred[None]:
        return states.initialize(key, wanted.state_epoch, wanted.start_offset)

    response: InitializeShareGroupStateResponse | Deferred[InitializeShareGroupStateResponse]
    response = answered(request, context, SHAPE, ask, no_fields)
    return response
