"""CreateDelegationToken: a token by which clients log in as its owner (KIP-48, KIP-373).

It is durable when it is answered. The order of the checks is Kafka's (KafkaApis, then
DelegationTokenControlManager).
"""

from typing import NamedTuple

from broker.runtime.principals import USER, Principal
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.runtime.wire_error import wire_error
from broker.security.delegation.rules import check_is_on, check_may_ask
from broker.security.delegation.token import DelegationToken
from broker.security.delegation.tokens import Tokens, Wish
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType
from protocol.apis.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError

MAX_RENEWERS = 100
MAX_NAME = 1024
"""Characters of a user's name, as in an ACL."""
NO_TIME = -1


class Services(NamedTuple):
    """The services that the answer is made with."""

    probes: BrokerProbes
    config: ConfigStore
    tokens: Tokens


Context = RequestContext[Services]


async def handle(
    request: CreateDelegationTokenRequest, context: Context
) -> CreateDelegationTokenResponse:
    """The new token with its HMAC, which is shown to nobody else but who may describe it."""
    owner = _owner(request, context.principal)
    context.asks(AclOperation.CREATE_TOKENS, ResourceType.USER)
    try:
        wish = _wish(request, owner, context)
        token = await context.services.tokens.create(wish)
    except KafkaError as error:
        return _refused(error, owner, context)
    except StorageError as fault:
        return _refused(wire_error(fault), owner, context)
    return _answer(token, context)


def _owner(request: CreateDelegationTokenRequest, asker: Principal) -> Principal:
    if not request.owner_principal_name:
        return asker
    return Principal(request.owner_principal_type or "", request.owner_principal_name)


def _wish(request: CreateDelegationTokenRequest, owner: Principal, context: Context) -> Wish:
    """The token that may be made. Raises KafkaError."""
    check_may_ask(context, context.services.config)
    if owner != context.principal and not context.may(
        AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner)
    ):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    kinds = {owner.kind, *(each.principal_type for each in request.renewers)}
    if kinds != {USER}:
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    check_is_on(is_on=context.services.tokens.is_on)
    renewers = tuple(dict.fromkeys(each.principal_name for each in request.renewers))
    if len(renewers) > MAX_RENEWERS or any(
        len(each) > MAX_NAME for each in (owner.name, *renewers)
    ):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"A token has at most {MAX_RENEWERS} renewers, a name {MAX_NAME} characters",
        )
    return Wish(owner.name, context.principal.name, renewers, request.max_lifetime_ms)


def _refused(
    error: KafkaError, owner: Principal, context: Context
) -> CreateDelegationTokenResponse:
    context.count_error(error.code)
    return CreateDelegationTokenResponse(
        error_code=error.code,
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=context.principal.kind,
        token_requester_principal_name=context.principal.name,
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
    )


def _answer(token: DelegationToken, context: Context) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        principal_type=USER,
        principal_name=token.owner,
        token_requester_principal_type=USER,
        token_requester_principal_name=token.requester,
        issue_timestamp_ms=token.issued_ms,
        expiry_timestamp_ms=token.expires_ms,
        max_timestamp_ms=token.latest_ms,
        token_id=token.token_id,
        hmac=context.services.tokens.hmac_of(token),
    )
