"""ListOffsets 0-11: the offset that belongs to a timestamp.

0: starts of segments by their files' times. 1: one offset a partition. 2: isolation level,
throttle time. 3: throttling after the answer. 4: leader epochs. 5: the answer may hold
OFFSET_NOT_AVAILABLE. 6: flexible. 7: the record with the largest timestamp may be asked for (-3,
KIP-734). 8: the earliest local offset (-4). 9: the last tiered offset (-5). 10: a timeout, for
remote look-ups. 11: the earliest offset not yet tiered (-6).
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int8, Int16, Int32, Int64, String


@message
class ListOffsetsPartition:
    """One question; `timestamp` is in milliseconds, or one of the special values below zero."""

    partition_index: int = field(Int32)
    current_leader_epoch: int = field(Int32, since=4, default=-1)
    timestamp: int = field(Int64)
    max_num_offsets: int = field(Int32, until=0, default=1)


@message
class ListOffsetsTopic:
    """The partitions of one topic."""

    name: str = field(String)
    partitions: list[ListOffsetsPartition] = field(Array(ListOffsetsPartition))


@message(flexible_from=6)
class ListOffsetsRequest:
    """Questions of a consumer (`replica_id` -1)."""

    replica_id: int = field(Int32, default=-1)
    isolation_level: int = field(Int8, since=2, doc="0: all records. 1: committed ones only")
    topics: list[ListOffsetsTopic] = field(Array(ListOffsetsTopic))
    timeout_ms: int = field(Int32, since=10)


@message
class ListOffsetsPartitionResponse:
    """The first offset at or after the time, with its timestamp; both -1 when there is none."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    old_style_offsets: list[int] = field(Array(Int64), until=0)
    timestamp: int = field(Int64, since=1, default=-1)
    offset: int = field(Int64, since=1, default=-1)
    leader_epoch: int = field(Int32, since=4, default=-1)


@message
class ListOffsetsTopicResponse:
    """The partitions of one topic."""

    name: str = field(String)
    partitions: list[ListOffsetsPartitionResponse] = field(Array(ListOffsetsPartitionResponse))


@message(flexible_from=6)
class ListOffsetsResponse:
    """The answers."""

    throttle_time_ms: int = field(Int32, since=2)
    topics: list[ListOffsetsTopicResponse] = field(Array(ListOffsetsTopicResponse))


API = Api(2, "ListOffsets", 0, 11, ListOffsetsRequest, ListOffsetsResponse)
