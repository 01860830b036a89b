"""ListTransactions 0-1: the transactional ids there are (KIP-664).

0: by state and producer. 1: that have been open for so long (KIP-994). Flexible from the start.

Absent: 2, a regular expression over transactional ids (KIP-1152): whoever asks would choose how
much work the broker does.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, Int64, String


@message(flexible_from=0)
class ListTransactionsRequest:
    """Transactions to list; an empty list means all."""

    state_filters: list[str] = field(Array(String))
    producer_id_filters: list[int] = field(Array(Int64))
    duration_filter: int = field(
        Int64, since=1, default=-1, doc="ms that a transaction has been open; below 0: all"
    )


@message
class TransactionState:
    """One transactional id."""

    transactional_id: str = field(String)
    producer_id: int = field(Int64)
    transaction_state: str = field(String)


@message(flexible_from=0)
class ListTransactionsResponse:
    """Those that fit, and the names of states that nobody knows."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    unknown_state_filters: list[str] = field(Array(String))
    transaction_states: list[TransactionState] = field(Array(TransactionState))


API = Api(66, "ListTransactions", 0, 1, ListTransactionsRequest, ListTransactionsResponse)
