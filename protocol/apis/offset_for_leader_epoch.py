"""OffsetForLeaderEpoch 0-4: where the records of a leader epoch end (KIP-101, KIP-320).

0. 1: the answer tells the epoch. 2: the present leader epoch fences; throttle time. 3: consumers
may ask (`replica_id` -1; the default -2 is a debugging consumer). 4: flexible.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, Int64, String


@message
class OffsetForLeaderPartition:
    """The epoch asked for, and the one the asker believes to be present."""

    partition: int = field(Int32)
    current_leader_epoch: int = field(Int32, since=2, default=-1)
    leader_epoch: int = field(Int32)


@message
class OffsetForLeaderTopic:
    """The partitions of one topic."""

    topic: str = field(String)
    partitions: list[OffsetForLeaderPartition] = field(Array(OffsetForLeaderPartition))


@message(flexible_from=4)
class OffsetForLeaderEpochRequest:
    """The partitions to look up."""

    replica_id: int = field(Int32, since=3, default=-2)
    topics: list[OffsetForLeaderTopic] = field(Array(OffsetForLeaderTopic))


@message
class EpochEndOffset:
    """The largest epoch not above the one asked for, and its end."""

    error_code: int = field(Int16)
    partition: int = field(Int32)
    leader_epoch: int = field(Int32, since=1, default=-1)
    end_offset: int = field(Int64, default=-1)


@message
class OffsetForLeaderTopicResult:
    """The partitions of one topic."""

    topic: str = field(String)
    partitions: list[EpochEndOffset] = field(Array(EpochEndOffset))


@message(flexible_from=4)
class OffsetForLeaderEpochResponse:
    """The answers."""

    throttle_time_ms: int = field(Int32, since=2)
    topics: list[OffsetForLeaderTopicResult] = field(Array(OffsetForLeaderTopicResult))


API = Api(
    23, "OffsetForLeaderEpoch", 0, 4, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
)
