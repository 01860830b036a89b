"""A change of a delegation token's end, as a client asks for it: renewal or expiry."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.runtime.wire_error import wire_error
from broker.security.delegation.rules import check_is_on, check_may_ask
from broker.security.delegation.tokens import Tokens
from config.store import ConfigStore
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError

NO_TIME = -1
"""The time in the answer to a client that may not ask, as Kafka writes it; other errors have 0."""


class TokenServices(NamedTuple):
    """The services that a token is changed with."""

    probes: BrokerProbes
    config: ConfigStore
    tokens: Tokens


class NewEnd(NamedTuple):
    """The error code, and the time at which the token ends now, in ms."""

    error_code: int
    expiry_timestamp_ms: int


async def new_end(
    context: RequestContext[TokenServices], change: Callable[[Tokens, str], Awaitable[int]]
) -> NewEnd:
    """The end after `change(tokens, user)`; it is durable. Errors are counted and have a code."""
    tokens = context.services.tokens
    try:
        check_may_ask(context, context.services.config)
        check_is_on(is_on=tokens.is_on)
        return NewEnd(ErrorCode.NONE, await change(tokens, context.principal.name))
    except KafkaError as error:
        code = error.code
    except StorageError as fault:
        code = wire_error(fault).code
    context.count_error(code)
    return NewEnd(code, NO_TIME if code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED else 0)
