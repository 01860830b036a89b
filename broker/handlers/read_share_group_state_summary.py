"""ReadShareGroupStateSummary: epochs and start of share partitions."""

from typing import NamedTuple

from broker.runtime.deferred import Deferred
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.share.state.coordinator import ShareCoordinator
from broker.share.state.key import ShareKey
from broker.share.state.remembered import SharePartitionState
from broker.share.state.requests import Shape, answered
from protocol.apis.read_share_group_state_summary import (
    ReadShareGroupStateSummaryPartition,
    ReadShareGroupStateSummaryPartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadShareGroupStateSummaryTopicResult,
)


class Services(NamedTuple):
    """The services that the answer is made with."""

    share_states: ShareCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]

SHAPE = Shape(
    ReadShareGroupStateSummaryResponse,
    ReadShareGroupStateSummaryTopicResult,
    ReadShareGroupStateSummaryPartitionResult,
)


def handle(
    request: ReadShareGroupStateSummaryRequest, context: Context
) -> ReadShareGroupStateSummaryResponse | Deferred[ReadShareGroupStateSummaryResponse]:
    """A code for each share partition, and the state without batches."""
    states = context.services.share_states

    def ask(key: ShareKey, _: ReadShareGroupStateSummaryPartition) -> SharePartitionState:
        return states.summary(key)

    response: ReadShareGroupStateSummaryResponse | Deferred[ReadShareGroupStateSummaryResponse]
    response = answered(request, context, SHAPE, ask, _fields)
    return response


def _fields(state: SharePartitionState) -> dict[str, object]:
    return {
        "state_epoch": state.state_epoch,
        "leader_epoch": state.leader_epoch,
        "start_offset": state.start_offset,
        "delivery_complete_count": state.finished,
    }
