"""Produce 0-13: append records.

0: sets of formats 0 and 1 (any format is taken up to 2). 1: throttle time. 2: broker time in the
answer. 3: format v2, exactly one batch a partition; transactional id. 4: the answer may hold
KAFKA_STORAGE_ERROR. 5: log start offset out. 6: throttling after the answer. 7: zstd permitted.
8: the bad records of a refused batch are listed (KIP-467). 9: flexible. 10: the present leader in
the answer (KIP-951). 11: abortable transactions. 12: partitions join a transaction by themselves
(KIP-890). 13: topic ids in place of names (KIP-516).

Old librdkafka sends no compressed batch to a broker that does not list version 0 (KAFKA-18659).
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, Int64, PackedArray, Records, String, Uuid


@message
class PartitionProduceData:
    """The batch or set for one partition; `records` is a memoryview when read."""

    index: int = field(Int32)
    records: Any = field(Records, nullable=True)


@message
class TopicProduceData:
    """The partitions of one topic."""

    name: str = field(String, until=12)
    topic_id: UUID = field(Uuid, since=13)
    partition_data: list[PartitionProduceData] = field(Array(PartitionProduceData))


@message(flexible_from=9)
class ProduceRequest:
    """Batches to append; `acks` is -1, 0 or 1."""

    transactional_id: str | None = field(String, since=3, nullable=True)
    acks: int = field(Int16)
    timeout_ms: int = field(Int32)
    topic_data: list[TopicProduceData] = field(Array(TopicProduceData))


@message
class BatchIndexAndErrorMessage:
    """One refused record: its place in the batch, and why."""

    batch_index: int = field(Int32, since=8)
    batch_index_error_message: str | None = field(String, since=8, nullable=True)


@message
class LeaderIdAndEpoch:
    """The leader of a partition, for a client that asked another broker."""

    leader_id: int = field(Int32, since=10, default=-1)
    leader_epoch: int = field(Int32, since=10, default=-1)


@message
class PartitionProduceResponse:
    """Result of one batch; `log_append_time_ms` is -1 unless the topic stamps arrival."""

    index: int = field(Int32)
    error_code: int = field(Int16)
    base_offset: int = field(Int64)
    log_append_time_ms: int = field(Int64, since=2, default=-1)
    log_start_offset: int = field(Int64, since=5, default=-1)
    record_errors: Sequence[BatchIndexAndErrorMessage] = field(
        PackedArray(BatchIndexAndErrorMessage), since=8
    )
    error_message: str | None = field(String, since=8, nullable=True)
    current_leader: LeaderIdAndEpoch | None = field(LeaderIdAndEpoch, since=10, tag=0)


@message
class TopicProduceResponse:
    """The partitions of one topic."""

    name: str = field(String, until=12)
    topic_id: UUID = field(Uuid, since=13)
    partition_responses: list[PartitionProduceResponse] = field(Array(PartitionProduceResponse))


@message
class NodeEndpoint:
    """The address of a broker named as leader."""

    node_id: int = field(Int32, since=10)
    host: str = field(String, since=10)
    port: int = field(Int32, since=10)
    rack: str | None = field(String, since=10, nullable=True)


@message(flexible_from=9)
class ProduceResponse:
    """Result of every batch; never sent for acks=0."""

    responses: list[TopicProduceResponse] = field(Array(TopicProduceResponse))
    throttle_time_ms: int = field(Int32, since=1)
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), since=10, tag=0)


API = Api(0, "Produce", 0, 13, ProduceRequest, ProduceResponse)
