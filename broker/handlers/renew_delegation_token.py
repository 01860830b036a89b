"""RenewDelegationToken: a token ends later (KIP-48).

It is durable when it is answered. Who holds the HMAC proves that the token is theirs to name; only
its owner and its renewers may change it.
"""

from broker.runtime.request_context import RequestContext
from broker.security.delegation.changes import TokenServices, new_end
from protocol.apis.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

Services = TokenServices
Context = RequestContext[Services]


async def handle(
    request: RenewDelegationTokenRequest, context: Context
) -> RenewDelegationTokenResponse:
    """The time at which the token ends now."""
    hmac, period_ms = bytes(request.hmac), request.renew_period_ms
    code, ends_ms = await new_end(context, lambda tokens, user: tokens.renew(hmac, period_ms, user))
    return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=ends_ms)
