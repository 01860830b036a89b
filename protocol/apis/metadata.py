"""Metadata 0-13: brokers, topics and the leaders of their partitions.

0: an empty list asks for all topics. 1: null asks for all, empty for none; controller, racks,
internal topics. 2: cluster id. 3: throttle time. 4: creation of topics may be forbidden.
5: offline replicas. 6: throttling after the answer. 7: leader epochs. 8: authorized operations.
9: flexible. 10: topic ids. 11: no more authorized operations of the cluster (DescribeCluster has
them). 12: topics may be asked for by id. 13: an error for the whole answer.
"""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int16, Int32, String, Uuid

UNKNOWN_OPERATIONS = -(2**31)


@message
class MetadataRequestTopic:
    """A topic asked for, by name or (12 and later) by id."""

    topic_id: UUID = field(Uuid, since=10)
    name: str | None = field(String, nullable=10)


@message(flexible_from=9)
class MetadataRequest:
    """Topics to describe; None is all of them (in version 0 an empty list is)."""

    topics: list[MetadataRequestTopic] | None = field(Array(MetadataRequestTopic), nullable=1)
    allow_auto_topic_creation: bool = field(Boolean, since=4, default=True)
    include_cluster_authorized_operations: bool = field(Boolean, since=8, until=10)
    include_topic_authorized_operations: bool = field(Boolean, since=8)


@message
class MetadataResponseBroker:
    """A broker and the address at which this client reaches it."""

    node_id: int = field(Int32)
    host: str = field(String)
    port: int = field(Int32)
    rack: str | None = field(String, since=1, nullable=True)


@message
class MetadataResponsePartition:
    """A partition's leader and replicas."""

    error_code: int = field(Int16)
    partition_index: int = field(Int32)
    leader_id: int = field(Int32)
    leader_epoch: int = field(Int32, since=7, default=-1)
    replica_nodes: list[int] = field(Array(Int32))
    isr_nodes: list[int] = field(Array(Int32))
    offline_replicas: list[int] = field(Array(Int32), since=5)


@message
class MetadataResponseTopic:
    """A topic; `name` is None (12 and later) when an unknown id was asked for."""

    error_code: int = field(Int16)
    name: str | None = field(String, nullable=12)
    topic_id: UUID = field(Uuid, since=10)
    is_internal: bool = field(Boolean, since=1)
    partitions: list[MetadataResponsePartition] = field(Array(MetadataResponsePartition))
    topic_authorized_operations: int = field(Int32, since=8, default=UNKNOWN_OPERATIONS)


@message(flexible_from=9)
class MetadataResponse:
    """The cluster as this broker sees it."""

    throttle_time_ms: int = field(Int32, since=3)
    brokers: list[MetadataResponseBroker] = field(Array(MetadataResponseBroker))
    cluster_id: str | None = field(String, since=2, nullable=True)
    controller_id: int = field(Int32, since=1, default=-1)
    topics: list[MetadataResponseTopic] = field(Array(MetadataResponseTopic))
    cluster_authorized_operations: int = field(Int32, since=8, until=10, default=UNKNOWN_OPERATIONS)
    error_code: int = field(Int16, since=13)


API = Api(3, "Metadata", 0, 13, MetadataRequest, MetadataResponse)
