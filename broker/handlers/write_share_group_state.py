"""WriteShareGroupState: changes what is remembered of share partitions."""

from typing import NamedTuple

from broker.runtime.deferred import Deferred
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.share.state.coordinator import ShareChange, ShareCoordinator
from broker.share.state.key import ShareKey
from broker.share.state.requests import Shape, answered, no_fields
from broker.share.states import StateBatch
from protocol.apis.write_share_group_state import (
    WriteShareGroupStatePartition,
    WriteShareGroupStatePartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteShareGroupStateTopicResult,
)
from protocol.errors import ErrorCode, KafkaError


class Services(NamedTuple):
    """The services that the answer is made with."""

    share_states: ShareCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]

SHAPE = Shape(
    WriteShareGroupStateResponse,
    WriteShareGroupStateTopicResult,
    WriteShareGroupStatePartitionResult,
)


def handle(
    request: WriteShareGroupStateRequest, context: Context
) -> WriteShareGroupStateResponse | Deferred[WriteShareGroupStateResponse]:
    """A code for each share partition, durable when it is 0."""
    states = context.services.share_states

    def ask(key: ShareKey, wanted: WriteShareGroupStatePartition) -> Deferred[None]:
        return states.write(key, _change(wanted))

    response: WriteShareGroupStateResponse | Deferred[WriteShareGroupStateResponse]
    response = answered(request, context, SHAPE, ask, no_fields)
    return response


def _change(wanted: WriteShareGroupStatePartition) -> ShareChange:
    batches = [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in wanted.state_batches
    ]
    if not all(0 <= each.first <= each.last for each in batches):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The offsets of a batch must not go back.")
    return ShareChange(
        wanted.state_epoch,
        wanted.leader_epoch,
        wanted.start_offset,
        wanted.delivery_complete_count,
        batches,
    )
