"""DescribeTopicPartitions 0: topics and their partitions, page by page (KIP-966).

Flexible from the start.
"""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int16, Int32, String, Uuid

UNKNOWN_OPERATIONS = -(2**31)


@message
class TopicRequest:
    """A topic asked for."""

    name: str = field(String)


@message
class Cursor:
    """The first partition of a page."""

    topic_name: str = field(String)
    partition_index: int = field(Int32)


@message(flexible_from=0)
class DescribeTopicPartitionsRequest:
    """The topics (none is all of them), and where the page begins."""

    topics: list[TopicRequest] = field(Array(TopicRequest))
    response_partition_limit: int = field(Int32, default=2000)
    cursor: Cursor | None = field(Cursor, nullable=True)


@message
class DescribeTopicPartitionsResponsePartition:
    """A partition's leader and replicas."""

    error_code: int = field(Int16)
    partition_index: int = field(Int32)
    leader_id: int = field(Int32)
    leader_epoch: int = field(Int32, default=-1)
    replica_nodes: list[int] = field(Array(Int32))
    isr_nodes: list[int] = field(Array(Int32))
    eligible_leader_replicas: list[int] | None = field(Array(Int32), nullable=True)
    last_known_elr: list[int] | None = field(Array(Int32), nullable=True)
    offline_replicas: list[int] = field(Array(Int32))


@message
class DescribeTopicPartitionsResponseTopic:
    """A topic, or the part of its partitions that fits the page."""

    error_code: int = field(Int16)
    name: str | None = field(String, nullable=True)
    topic_id: UUID = field(Uuid)
    is_internal: bool = field(Boolean)
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(
        Array(DescribeTopicPartitionsResponsePartition)
    )
    topic_authorized_operations: int = field(Int32, default=UNKNOWN_OPERATIONS)


@message(flexible_from=0)
class DescribeTopicPartitionsResponse:
    """One page; `next_cursor` is None on the last."""

    throttle_time_ms: int = field(Int32)
    topics: list[DescribeTopicPartitionsResponseTopic] = field(
        Array(DescribeTopicPartitionsResponseTopic)
    )
    next_cursor: Cursor | None = field(Cursor, nullable=True)


API = Api(
    75,
    "DescribeTopicPartitions",
    0,
    0,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
