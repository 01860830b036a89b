"""ExpireDelegationToken: a token ends at another time, or at once (KIP-48).

It is durable when it is answered. Who holds the HMAC proves that the token is theirs to name; only
its owner and its renewers may change it.
"""

from broker.runtime.request_context import RequestContext
from broker.security.delegation.changes import TokenServices, new_end
from protocol.apis.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

Services = TokenServices
Context = RequestContext[Services]


async def handle(
    request: ExpireDelegationTokenRequest, context: Context
) -> ExpireDelegationTokenResponse:
    """The time at which the token ends now, or ended."""
    hmac, period_ms = bytes(request.hmac), request.expiry_time_period_ms
    code, ends_ms = await new_end(
        context, lambda tokens, user: tokens.expire(hmac, period_ms, user)
    )
    return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=ends_ms)
