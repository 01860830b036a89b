"""RenewDelegationToken 1-2: a token ends later (KIP-48). 2: flexible."""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Bytes, Int16, Int32, Int64


@message(flexible_from=2)
class RenewDelegationTokenRequest:
    """The secret of the token; a negative period is the broker's usual one."""

    hmac: bytes = field(Bytes)
    renew_period_ms: int = field(Int64)


@message(flexible_from=2)
class RenewDelegationTokenResponse:
    """The time at which the token ends now, unless it is renewed."""

    error_code: int = field(Int16)
    expiry_timestamp_ms: int = field(Int64)
    throttle_time_ms: int = field(Int32)


API = Api(
    39,
    "RenewDelegationToken",
    1,
    2,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
