"""DescribeCluster: one broker, which is its own controller."""

from broker.requests.services import HandlerContext
from protocol.apis.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from protocol.errors import ErrorCode

BROKERS = 1


def handle(request: DescribeClusterRequest, context: HandlerContext) -> DescribeClusterResponse:
    """This node by the address the client can reach; controller endpoints are not served (v1+)."""
    broker = context.broker
    if request.endpoint_type != BROKERS:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        context.count_error(code)
        return DescribeClusterResponse(
            error_code=code,
            error_message="This address serves brokers, not controllers",
            endpoint_type=BROKERS,
        )
    host, port = context.broker.advertised(context)
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        brokers=[DescribeClusterBroker(broker_id=broker.node_id, host=host, port=port)],
    )
