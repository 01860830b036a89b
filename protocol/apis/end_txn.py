"""EndTxn 0-5: a transaction is committed or aborted.

0. 1: throttling after the answer. 2: PRODUCER_FENCED in place of INVALID_PRODUCER_EPOCH. 3:
flexible. 4: the answer may hold TRANSACTION_ABORTABLE. 5: every end takes an epoch, and the answer
holds the id and epoch to go on with (KIP-890).
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Boolean, Int16, Int32, Int64, String


@message(flexible_from=3)
class EndTxnRequest:
    """The transaction, and its outcome."""

    transactional_id: str = field(String)
    producer_id: int = field(Int64)
    producer_epoch: int = field(Int16)
    committed: bool = field(Boolean)


@message(flexible_from=3)
class EndTxnResponse:
    """Result of the request."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    producer_id: int = field(Int64, since=5, default=-1)
    producer_epoch: int = field(Int16, since=5, default=-1)


API = Api(26, "EndTxn", 0, 5, EndTxnRequest, EndTxnResponse)
