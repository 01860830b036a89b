"""FindCoordinator: on a single node every coordinator is this node.

Groups and transactions get the answer that stays true when they are served; librdkafka also takes
this API's presence as a sign that lz4 is understood.
"""

from broker.context import RequestContext
from protocol.apis.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from protocol.errors import ErrorCode

GROUP, TRANSACTION = 0, 1
KEY_LIST_SINCE_VERSION = 4


def handle(request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
    """This node for every key; INVALID_REQUEST (42) for a kind of coordinator that is unknown."""
    if context.api_version >= KEY_LIST_SINCE_VERSION:
        return FindCoordinatorResponse(
            coordinators=[
                _coordinator(key, request.key_type, context) for key in request.coordinator_keys
            ]
        )
    only = _coordinator(request.key, request.key_type, context)
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _coordinator(key: str, key_type: int, context: RequestContext) -> Coordinator:
    if key_type not in {GROUP, TRANSACTION}:
        code = ErrorCode.INVALID_REQUEST
        context.count_error(code)
        return Coordinator(
            key=key,
            node_id=-1,
            host="",
            port=-1,
            error_code=code,
            error_message=f"There is no coordinator of kind {key_type}",
        )
    host, port = context.advertised()
    return Coordinator(
        key=key, node_id=context.broker.node_id, host=host, port=port, error_message=""
    )
