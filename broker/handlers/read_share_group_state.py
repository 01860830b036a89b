"""ReadShareGroupState: states of share partitions."""

from typing import NamedTuple

from broker.runtime.deferred import Deferred
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.share.state.coordinator import ShareCoordinator
from broker.share.state.key import ShareKey
from broker.share.state.remembered import SharePartitionState
from broker.share.state.requests import Shape, answered
from protocol.apis.read_share_group_state import (
    ReadShareGroupStatePartition,
    ReadShareGroupStatePartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateTopicResult,
    StateBatch,
)


class Services(NamedTuple):
    """The services that the answer is made with."""

    share_states: ShareCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]

SHAPE = Shape(
    ReadShareGroupStateResponse,
    ReadShareGroupStateTopicResult,
    ReadShareGroupStatePartitionResult,
)


def handle(
    request: ReadShareGroupStateRequest, context: Context
) -> ReadShareGroupStateResponse | Deferred[ReadShareGroupStateResponse]:
    """A code for each share partition, and its state."""
    states = context.services.share_states

    def ask(
        key: ShareKey, wanted: ReadShareGroupStatePartition
    ) -> SharePartitionState | Deferred[SharePartitionState]:
        return states.read(key, wanted.leader_epoch)

    response: ReadShareGroupStateResponse | Deferred[ReadShareGroupStateResponse]
    response = answered(request, context, SHAPE, ask, _fields)
    return response


def _fields(state: SharePartitionState) -> dict[str, object]:
    return {
        "state_epoch": state.state_epoch,
        "start_offset": state.start_offset,
        "state_batches": [
            StateBatch(
                first_offset=each.first,
                last_offset=each.last,
                delivery_state=each.state,
                delivery_count=each.deliveries,
            )
            for each in state.batches
        ],
    }
