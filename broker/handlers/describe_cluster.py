"""DescribeCluster: one broker, which is its own controller."""

from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.server.endpoints import AdvertisedEndpoints
from protocol.acls import NO_OPERATIONS
from protocol.apis.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from protocol.errors import ErrorCode
from storage.directory.log_manager import LogManager

BROKERS = 1


class Services(NamedTuple):
    """The services that the answer is made with."""

    probes: BrokerProbes
    node_id: int
    endpoints: AdvertisedEndpoints
    logs: LogManager


Context = RequestContext[Services]


def handle(request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    """This node by the address the client can reach; controller endpoints are not served (v1+)."""
    services = context.services
    if request.endpoint_type != BROKERS:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        context.count_error(code)
        return DescribeClusterResponse(
            error_code=code,
            error_message="This address serves brokers, not controllers",
            endpoint_type=BROKERS,
        )
    host, port = context.services.endpoints.of(context.peer)
    bits = (
        context.cluster_bits() if request.include_cluster_authorized_operations else NO_OPERATIONS
    )
    return DescribeClusterResponse(
        cluster_id=services.logs.cluster_id,
        controller_id=services.node_id,
        brokers=[
            DescribeClusterBroker(broker_id=services.node_id, host=host, port=port),
            *(
                DescribeClusterBroker(broker_id=number, host=host, port=port)
                for number, (host, port) in services.endpoints.others_of(context.peer).items()
            ),
        ],
        cluster_authorized_operations=bits,
    )
