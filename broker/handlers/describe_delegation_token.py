"""DescribeDelegationToken: tokens with their HMACs, to who may know them (KIP-48)."""

from typing import NamedTuple

from broker.runtime.principals import USER
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.security.delegation.rules import check_is_on, check_may_ask
from broker.security.delegation.token import DelegationToken
from broker.security.delegation.tokens import Tokens
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType
from protocol.apis.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from protocol.errors import KafkaError


class Services(NamedTuple):
    """The services that the answer is made with."""

    probes: BrokerProbes
    config: ConfigStore
    tokens: Tokens


Context = RequestContext[Services]


def handle(
    request: DescribeDelegationTokenRequest, context: Context
) -> DescribeDelegationTokenResponse:
    """The tokens that bear one of the names asked for, as far as who asks may see them."""
    context.asks(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN)
    try:
        check_may_ask(context, context.services.config)
        check_is_on(is_on=context.services.tokens.is_on)
    except KafkaError as error:
        context.count_error(error.code)
        return DescribeDelegationTokenResponse(error_code=error.code)
    found = context.services.tokens.all()
    if request.owners is not None:
        names = {each.principal_name for each in request.owners if each.principal_type == USER}
        found = [each for each in found if _bears_one_of(each, names)]
    return DescribeDelegationTokenResponse(
        tokens=[_described(each, context) for each in found if _may_see(each, context)]
    )


def _bears_one_of(token: DelegationToken, names: set[str]) -> bool:
    return not names.isdisjoint((token.owner, token.requester, *token.renewers))


def _may_see(token: DelegationToken, context: Context) -> bool:
    """True for those whose name it bears; others need a right on its owner, or on the token."""
    return (
        token.is_about(context.principal.name)
        or context.sees(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, f"{USER}:{token.owner}")
        or context.sees(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
    )


def _described(token: DelegationToken, context: Context) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        principal_type=USER,
        principal_name=token.owner,
        token_requester_principal_type=USER,
        token_requester_principal_name=token.requester,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.latest_ms,
        token_id=token.token_id,
        hmac=context.services.tokens.hmac_of(token),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=USER, principal_name=each)
            for each in token.renewers
        ],
    )
