"""FindCoordinator: on a single node every coordinator is this node.

The state topic of groups, or of transactional ids, is created before the first client receives its
coordinator, so that its first commit does not wait for that. librdkafka also takes this
API's presence as a sign that lz4 is understood.
"""

from collections.abc import Awaitable
from typing import NamedTuple

from broker.groups.coordinator import GroupCoordinator
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import DENIED, RequestContext
from broker.server.endpoints import AdvertisedEndpoints
from broker.state.state_topic import StateTopic
from broker.transactions.coordinator import TransactionCoordinator
from protocol.acls import AclOperation, ResourceType
from protocol.apis.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from protocol.errors import ErrorCode, KafkaError

GROUP, TRANSACTION = 0, 1
KEY_LIST_SINCE_VERSION = 4


class Services(NamedTuple):
    """The services that the answer is made with."""

    groups: GroupCoordinator
    transactions: TransactionCoordinator
    probes: BrokerProbes
    node_id: int
    endpoints: AdvertisedEndpoints


Context = RequestContext[Services]

KINDS = {GROUP: ResourceType.GROUP, TRANSACTION: ResourceType.TRANSACTIONAL_ID}


def handle(
    request: FindCoordinatorRequest, context: Context
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
    """This node for every key; INVALID_REQUEST (42) for a kind of coordinator that is unknown."""
    context.asks(AclOperation.DESCRIBE, ResourceType.GROUP)
    topic = _topic(request, context)
    if topic is not None and not topic.partitions and _allowed(request, context):
        return _make_and_answer(topic, request, context)
    return _answer(request, context, None)


def _topic(request: FindCoordinatorRequest, context: Context) -> StateTopic | None:
    """The state topic of such keys."""
    match request.key_type:
        case 0:  # GROUP
            return context.services.groups.topic
        case 1:
            return context.services.transactions.topic
        case _:
            return None


async def _make_and_answer(
    topic: StateTopic, request: FindCoordinatorRequest, context: Context
) -> FindCoordinatorResponse:
    try:
        await topic.make()
    except KafkaError as error:
        return _answer(request, context, error)
    return _answer(request, context, None)


def _keys(request: FindCoordinatorRequest, context: Context) -> list[str]:
    if context.api_version >= KEY_LIST_SINCE_VERSION:
        return list(dict.fromkeys(request.coordinator_keys))
    return [request.key]


def _allowed(request: FindCoordinatorRequest, context: Context) -> list[str]:
    kind = KINDS[request.key_type]
    keys = _keys(request, context)
    return context.allowed(AclOperation.DESCRIBE, kind, keys, lambda key: key)


def _answer(
    request: FindCoordinatorRequest, context: Context, fault: KafkaError | None
) -> FindCoordinatorResponse:
    found = [_coordinator(key, request.key_type, context, fault) for key in _keys(request, context)]
    if context.api_version >= KEY_LIST_SINCE_VERSION:
        return FindCoordinatorResponse(coordinators=found)
    only = found[0]
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _coordinator(
    key: str, key_type: int, context: Context, fault: KafkaError | None
) -> Coordinator:
    if key_type not in {GROUP, TRANSACTION}:
        text = f"There is no coordinator of kind {key_type}"
        return _refusal(key, KafkaError(ErrorCode.INVALID_REQUEST, text), context)
    if not context.may(AclOperation.DESCRIBE, KINDS[key_type], key):
        return _refusal(key, KafkaError(DENIED[KINDS[key_type]]), context)
    if fault is not None:
        return _refusal(key, fault, context)
    host, port = context.services.endpoints.of(context.peer)
    return Coordinator(
        key=key, node_id=context.services.node_id, host=host, port=port, error_message=""
    )


def _refusal(key: str, error: KafkaError, context: Context) -> Coordinator:
    context.count_error(error.code)
    return Coordinator(
        key=key,
        node_id=-1,
        host="",
        port=-1,
        error_code=error.code,
        error_message=error.message,
    )
