"""AddOffsetsToTxn 0-4: a group whose offsets take part in a transaction.

0. 1: throttling after the answer. 2: PRODUCER_FENCED in place of INVALID_PRODUCER_EPOCH. 3:
flexible. 4: the answer may hold TRANSACTION_ABORTABLE.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Int16, Int32, Int64, String


@message(flexible_from=3)
class AddOffsetsToTxnRequest:
    """The transaction, and the group that joins it."""

    transactional_id: str = field(String)
    producer_id: int = field(Int64)
    producer_epoch: int = field(Int16)
    group_id: str = field(String)


@message(flexible_from=3)
class AddOffsetsToTxnResponse:
    """Result of joining."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)


API = Api(25, "AddOffsetsToTxn", 0, 4, AddOffsetsToTxnRequest, AddOffsetsToTxnResponse)
