"""AddPartitionsToTxn 0-5: partitions that take part in a transaction.

0. 1: throttling after the answer. 2: PRODUCER_FENCED in place of INVALID_PRODUCER_EPOCH. 3:
flexible. 4: many transactions at once, and only asking whether partitions take part, as brokers do
(KIP-890). 5: the answer may hold TRANSACTION_ABORTABLE. Clients use up to 3.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int16, Int32, Int64, String


@message
class AddPartitionsToTxnTopic:
    """Partitions of one topic."""

    name: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message
class AddPartitionsToTxnTransaction:
    """One transaction, of several."""

    transactional_id: str = field(String, since=4)
    producer_id: int = field(Int64, since=4)
    producer_epoch: int = field(Int16, since=4)
    verify_only: bool = field(Boolean, since=4)
    topics: list[AddPartitionsToTxnTopic] = field(Array(AddPartitionsToTxnTopic), since=4)


@message(flexible_from=3)
class AddPartitionsToTxnRequest:
    """The transactions, or up to version 3 the only one."""

    transactions: list[AddPartitionsToTxnTransaction] = field(
        Array(AddPartitionsToTxnTransaction), since=4
    )
    v3_and_below_transactional_id: str = field(String, until=3)
    v3_and_below_producer_id: int = field(Int64, until=3)
    v3_and_below_producer_epoch: int = field(Int16, until=3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(
        Array(AddPartitionsToTxnTopic), until=3
    )


@message
class AddPartitionsToTxnPartitionResult:
    """Result of one partition."""

    partition_index: int = field(Int32)
    partition_error_code: int = field(Int16)


@message
class AddPartitionsToTxnTopicResult:
    """The partitions of one topic."""

    name: str = field(String)
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(
        Array(AddPartitionsToTxnPartitionResult)
    )


@message
class AddPartitionsToTxnResult:
    """The partitions of one transaction."""

    transactional_id: str = field(String, since=4)
    topic_results: list[AddPartitionsToTxnTopicResult] = field(
        Array(AddPartitionsToTxnTopicResult), since=4
    )


@message(flexible_from=3)
class AddPartitionsToTxnResponse:
    """Result of every partition."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16, since=4)
    results_by_transaction: list[AddPartitionsToTxnResult] = field(
        Array(AddPartitionsToTxnResult), since=4
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(
        Array(AddPartitionsToTxnTopicResult), until=3
    )


API = Api(24, "AddPartitionsToTxn", 0, 5, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse)
