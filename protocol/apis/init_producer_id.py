"""InitProducerId 0-5: an id and an epoch for an idempotent or transactional producer.

0. 1: throttling after the answer. 2: flexible. 3: a producer may ask to go on with its present id
(KIP-360). 4: the answer may hold PRODUCER_FENCED. 5: it may hold TRANSACTION_ABORTABLE.

Absent: 6 (two-phase commit, KIP-939), which Kafka 4.3 marks as unstable and does not list.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Int16, Int32, Int64, String


@message(flexible_from=2)
class InitProducerIdRequest:
    """The producer; without a transactional id it is idempotent only."""

    transactional_id: str | None = field(String, nullable=True)
    transaction_timeout_ms: int = field(Int32)
    producer_id: int = field(Int64, since=3, default=-1)
    producer_epoch: int = field(Int16, since=3, default=-1)


@message(flexible_from=2)
class InitProducerIdResponse:
    """The id and its epoch."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    producer_id: int = field(Int64, default=-1)
    producer_epoch: int = field(Int16)


API = Api(22, "InitProducerId", 0, 5, InitProducerIdRequest, InitProducerIdResponse)
