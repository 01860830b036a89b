"""DescribeTransactions 0: what is known of transactional ids (KIP-664). Flexible from the start."""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, Int64, String


@message(flexible_from=0)
class DescribeTransactionsRequest:
    """The ids to describe."""

    transactional_ids: list[str] = field(Array(String))


@message
class TopicData:
    """Partitions of one topic that take part."""

    topic: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message
class TransactionState:
    """One id; times in ms, -1 for none."""

    error_code: int = field(Int16)
    transactional_id: str = field(String)
    transaction_state: str = field(String)
    transaction_timeout_ms: int = field(Int32)
    transaction_start_time_ms: int = field(Int64)
    producer_id: int = field(Int64)
    producer_epoch: int = field(Int16)
    topics: list[TopicData] = field(Array(TopicData))


@message(flexible_from=0)
class DescribeTransactionsResponse:
    """State of each transaction."""

    throttle_time_ms: int = field(Int32)
    transaction_states: list[TransactionState] = field(Array(TransactionState))


API = Api(
    65, "DescribeTransactions", 0, 0, DescribeTransactionsRequest, DescribeTransactionsResponse
)
