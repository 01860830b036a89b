"""CreateDelegationToken 1-3: a token by which a client logs in as its owner (KIP-48).

2: flexible. 3: an owner other than who asks (KIP-373).
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Bytes, Int16, Int32, Int64, String


@message
class CreatableRenewers:
    """A user that may renew the token besides its owner."""

    principal_type: str = field(String)
    principal_name: str = field(String)


@message(flexible_from=2)
class CreateDelegationTokenRequest:
    """The token that is wanted; `max_lifetime_ms` is -1 for the broker's longest."""

    owner_principal_type: str | None = field(String, since=3, nullable=True)
    owner_principal_name: str | None = field(String, since=3, nullable=True)
    renewers: list[CreatableRenewers] = field(Array(CreatableRenewers))
    max_lifetime_ms: int = field(Int64)


@message(flexible_from=2)
class CreateDelegationTokenResponse:
    """The token. `hmac` is its secret: in base64 it is the password to its id."""

    error_code: int = field(Int16)
    principal_type: str = field(String)
    principal_name: str = field(String)
    token_requester_principal_type: str = field(String, since=3)
    token_requester_principal_name: str = field(String, since=3)
    issue_timestamp_ms: int = field(Int64)
    expiry_timestamp_ms: int = field(Int64)
    max_timestamp_ms: int = field(Int64)
    token_id: str = field(String)
    hmac: bytes = field(Bytes)
    throttle_time_ms: int = field(Int32)


API = Api(
    38,
    "CreateDelegationToken",
    1,
    3,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
