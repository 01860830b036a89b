"""Log-ins to a broker by SASL: the requests in their order, whoever sends them (KIP-152)."""

from collections.abc import Callable
from typing import Any

from broker.access.errors import BrokerNotProven, LoginRefused
from broker.access.scram import ScramClient
from broker.access.settings import BEARER, ClientSecurity
from protocol.apis.sasl_authenticate import SaslAuthenticateRequest
from protocol.apis.sasl_handshake import SaslHandshakeRequest
from protocol.errors import ErrorCode

Ask = Callable[[Any], Any]
"""Sends a request and gives its answer."""


def log_in(ask: Ask, security: ClientSecurity) -> int:
    """Length of the session in ms, 0: no limit. LoginRefused, BrokerNotProven, BadSetting."""
    name = security.mechanism
    token = _bearer(security) if name == BEARER else ""
    answer = ask(SaslHandshakeRequest(mechanism=name))
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        enabled = ", ".join(answer.mechanisms)
        raise LoginRefused(f"the broker's mechanisms are {enabled}, not {name}")
    _check(answer.error_code, None)
    if name == BEARER:
        return _by_token(ask, token)
    user, password = security.login or ("", "")
    if name == "PLAIN":
        return _lifetime(_sent(ask, f"\0{user}\0{password}".encode()))
    by_token = security.jaas.get("tokenauth", "").lower() == "true"
    return _by_scram(ask, ScramClient(name, user, password, _nonce(), by_token=by_token))


def _bearer(security: ClientSecurity) -> str:
    from broker.access.bearer import bearer_token  # loads a client of https

    return bearer_token(security)


def _by_scram(ask: Ask, scram: ScramClient) -> int:
    challenge = _sent(ask, scram.first())
    answer = _sent(ask, scram.final(bytes(challenge.auth_bytes)))
    scram.check(bytes(answer.auth_bytes))
    return _lifetime(answer)


def _by_token(ask: Ask, token: str) -> int:
    """A refused token is first described, and refused after the client's turn (RFC 7628)."""
    answer = _sent(ask, f"n,,\x01auth=Bearer {token}\x01\x01".encode())
    if answer.auth_bytes:
        _sent(ask, b"\x01")
        raise BrokerNotProven("the broker describes a failure of the token, and takes it")
    return _lifetime(answer)


def _sent(ask: Ask, token: bytes) -> Any:
    answer = ask(SaslAuthenticateRequest(auth_bytes=token))
    _check(answer.error_code, answer.error_message)
    return answer


def _check(code: int, message: str | None) -> None:
    if code:
        known = ErrorCode(code).description if code in set(ErrorCode) else f"error {code}"
        raise LoginRefused(message or known)


def _lifetime(answer: Any) -> int:
    return int(answer.session_lifetime_ms)


def _nonce() -> str:
    from storage.posix import real_env

    return real_env().rng.uuid().hex
