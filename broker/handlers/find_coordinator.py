"""FindCoordinator: the leader of the partition that remembers a key; without a fleet this node.

The state topic of groups, of transactional ids or of share partitions is created before the first
client receives its coordinator, so that its first commit does not wait for that. librdkafka also
takes this API's presence as a sign that lz4 is understood.
"""

import asyncio
from collections.abc import Generator, Iterator
from functools import partial
from typing import NamedTuple

from broker.groups.coordinator import GroupCoordinator
from broker.runtime.answers import AnswerRoom, Answers
from broker.runtime.deferred import Deferred
from broker.runtime.endpoint import Endpoint
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.server.endpoints import AdvertisedEndpoints
from broker.share.state.coordinator import ShareCoordinator
from broker.share.state.key import read_owner
from broker.state.state_topic import StateTopic
from broker.transactions.coordinator import TransactionCoordinator
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from protocol.errors import ErrorCode, KafkaError

GROUP, TRANSACTION, SHARE = range(3)
KEY_LIST_SINCE_VERSION = 4
SHARE_SINCE_VERSION = 6


class Services(NamedTuple):
    """The services that the answer is made with."""

    groups: GroupCoordinator
    transactions: TransactionCoordinator
    share_states: ShareCoordinator
    probes: BrokerProbes
    node_id: int
    endpoints: AdvertisedEndpoints
    answers: Answers


Context = RequestContext[Services]

KINDS = {GROUP: ResourceType.GROUP, TRANSACTION: ResourceType.TRANSACTIONAL_ID}
SHARE_ASKS = AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME


def handle(
    request: FindCoordinatorRequest, context: Context
) -> FindCoordinatorResponse | Deferred[FindCoordinatorResponse]:
    """A node for every key; INVALID_REQUEST (42) for a kind of coordinator that is unknown."""
    context.asks(AclOperation.DESCRIBE, ResourceType.GROUP)
    return context.services.answers.make(
        partial(_coordinators, request, context), partial(_respond, context), beside=True
    )


def _coordinators(
    request: FindCoordinatorRequest, context: Context, room: AnswerRoom
) -> Iterator[Coordinator | None]:
    keys, fault = _keys(request, context), None
    topic = _topic(request, context)
    if topic is not None and not topic.partitions:
        is_allowed = yield from _is_any_allowed(keys, request, context)
        if is_allowed:
            room.waits_for = making = asyncio.get_running_loop().create_task(_make(topic))
            yield None
            fault = making.result()
    for key in keys:
        yield _coordinator(key, request.key_type, context, fault)


async def _make(topic: StateTopic) -> KafkaError | None:
    """Makes a state topic; the error that refuses it."""
    try:
        await topic.make()
    except KafkaError as error:
        return error
    return None


def _topic(request: FindCoordinatorRequest, context: Context) -> StateTopic | None:
    """The state topic of such keys."""
    match request.key_type:
        case 0:  # GROUP
            return context.services.groups.topic
        case 1:
            return context.services.transactions.topic
        case 2 if context.api_version >= SHARE_SINCE_VERSION:
            return context.services.share_states.topic
        case _:
            return None


def _keys(request: FindCoordinatorRequest, context: Context) -> list[str]:
    if context.api_version >= KEY_LIST_SINCE_VERSION:
        return list(dict.fromkeys(request.coordinator_keys))
    return [request.key]


def _is_any_allowed(
    keys: list[str], request: FindCoordinatorRequest, context: Context
) -> Generator[None, None, bool]:
    """True when the client may be shown the coordinator of some key."""
    if request.key_type == SHARE:
        return bool(keys) and context.sees(*SHARE_ASKS)
    for key in keys:
        if context.sees(AclOperation.DESCRIBE, KINDS[request.key_type], key):
            return True
        yield
    return False


def _respond(context: Context, found: list[Coordinator]) -> FindCoordinatorResponse:
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
    try:
        _check(key, key_type, context)
    except KafkaError as refused:
        return _refusal(key, refused, context)
    if fault is not None:
        return _refusal(key, fault, context)
    node_id, (host, port) = _place(key, key_type, context)
    return Coordinator(key=key, node_id=node_id, host=host, port=port, error_message="")


def _place(key: str, key_type: int, context: Context) -> tuple[int, Endpoint]:
    """The node, and its address; this node's while nobody leads, or one of no known address.

    It is asked, says NOT_COORDINATOR, and the client looks again. At COORDINATOR_NOT_AVAILABLE a
    transactional producer of librdkafka would look three times within a second, and then no more.
    """
    services = context.services
    elsewhere = _state_topic(key_type, services).leader_elsewhere(key)
    if elsewhere is not None:
        address = services.endpoints.known_to(context.peer).get(elsewhere.node_id)
        if address is not None:
            return elsewhere.node_id, address
    return services.node_id, services.endpoints.of(context.peer)


def _state_topic(key_type: int, services: Services) -> StateTopic:
    if key_type == SHARE:
        return services.share_states.topic
    return services.groups.topic if key_type == GROUP else services.transactions.topic


def _check(key: str, key_type: int, context: Context) -> None:
    """KafkaError for a key that has no coordinator, or none for this client."""
    if key_type in KINDS:
        context.require(AclOperation.DESCRIBE, KINDS[key_type], key)
        return
    if key_type != SHARE or context.api_version < SHARE_SINCE_VERSION:
        text = f"There is no coordinator of kind {key_type}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    context.require(*SHARE_ASKS)
    try:
        read_owner(key)
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error


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
