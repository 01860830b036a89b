"""Rules on asking for delegation tokens at all: as in Kafka, not every client may."""

from typing import Any

from broker.runtime.principals import ANONYMOUS
from broker.runtime.request_context import RequestContext
from config.security.protocols import PLAINTEXT, SSL
from config.store import ConfigStore
from protocol.errors import ErrorCode, KafkaError


def check_may_ask(context: RequestContext[Any], config: ConfigStore) -> None:
    """DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (64) for who logged in by a token, or not at all."""
    protocol = config.broker_config.protocol_of(context.listener_name)
    is_nobody = protocol == SSL and context.principal == ANONYMOUS
    if context.peer.by_token or protocol == PLAINTEXT or is_nobody:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def check_is_on(*, is_on: bool) -> None:
    """DELEGATION_TOKEN_AUTH_DISABLED (61) without `delegation.token.secret.key`."""
    if not is_on:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
