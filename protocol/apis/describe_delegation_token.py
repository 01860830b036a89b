"""DescribeDelegationToken 1-3: tokens of owners, with their secrets (KIP-48).

2: flexible. 3: who asked for the token (KIP-373).
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Bytes, Int16, Int32, Int64, String


@message
class DescribeDelegationTokenOwner:
    """An owner, or a renewer, whose tokens are asked for."""

    principal_type: str = field(String)
    principal_name: str = field(String)


@message(flexible_from=2)
class DescribeDelegationTokenRequest:
    """Null: the tokens of all; an empty list: none."""

    owners: list[DescribeDelegationTokenOwner] | None = field(
        Array(DescribeDelegationTokenOwner), nullable=True
    )


@message
class DescribedDelegationTokenRenewer:
    """A user that may renew the token besides its owner."""

    principal_type: str = field(String)
    principal_name: str = field(String)


@message
class DescribedDelegationToken:
    """One token; times are milliseconds since the epoch."""

    principal_type: str = field(String)
    principal_name: str = field(String)
    token_requester_principal_type: str = field(String, since=3)
    token_requester_principal_name: str = field(String, since=3)
    issue_timestamp: int = field(Int64)
    expiry_timestamp: int = field(Int64)
    max_timestamp: int = field(Int64)
    token_id: str = field(String)
    hmac: bytes = field(Bytes)
    renewers: list[DescribedDelegationTokenRenewer] = field(Array(DescribedDelegationTokenRenewer))


@message(flexible_from=2)
class DescribeDelegationTokenResponse:
    """The tokens that who asks may see."""

    error_code: int = field(Int16)
    tokens: list[DescribedDelegationToken] = field(Array(DescribedDelegationToken))
    throttle_time_ms: int = field(Int32)


API = Api(
    41,
    "DescribeDelegationToken",
    1,
    3,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
