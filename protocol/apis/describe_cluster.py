"""DescribeCluster 0-2: the cluster's id, controller and brokers.

0. 1: brokers or controllers may be asked for (KIP-919). 2: fenced brokers may be included
(KIP-1073). Flexible from the start.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int8, Int16, Int32, String

UNKNOWN_OPERATIONS = -(2**31)


@message(flexible_from=0)
class DescribeClusterRequest:
    """Parts to include in the answer."""

    include_cluster_authorized_operations: bool = field(Boolean)
    endpoint_type: int = field(Int8, since=1, default=1, doc="1: brokers. 2: controllers")
    include_fenced_brokers: bool = field(Boolean, since=2)


@message
class DescribeClusterBroker:
    """A broker and the address at which this client reaches it."""

    broker_id: int = field(Int32)
    host: str = field(String)
    port: int = field(Int32)
    rack: str | None = field(String, nullable=True)
    is_fenced: bool = field(Boolean, since=2)


@message(flexible_from=0)
class DescribeClusterResponse:
    """The cluster."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)
    endpoint_type: int = field(Int8, since=1, default=1)
    cluster_id: str = field(String)
    controller_id: int = field(Int32, default=-1)
    brokers: list[DescribeClusterBroker] = field(Array(DescribeClusterBroker))
    cluster_authorized_operations: int = field(Int32, default=UNKNOWN_OPERATIONS)


API = Api(60, "DescribeCluster", 0, 2, DescribeClusterRequest, DescribeClusterResponse)
