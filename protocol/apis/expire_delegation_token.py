"""ExpireDelegationToken 1-2: a token ends at another time, or at once (KIP-48). 2: flexible."""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Bytes, Int16, Int32, Int64


@message(flexible_from=2)
class ExpireDelegationTokenRequest:
    """The secret of the token; a negative period ends it at once."""

    hmac: bytes = field(Bytes)
    expiry_time_period_ms: int = field(Int64)


@message(flexible_from=2)
class ExpireDelegationTokenResponse:
    """The time at which the token ends now."""

    error_code: int = field(Int16)
    expiry_timestamp_ms: int = field(Int64)
    throttle_time_ms: int = field(Int32)


API = Api(
    40,
    "ExpireDelegationToken",
    1,
    2,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
