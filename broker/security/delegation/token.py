"""One delegation token (KIP-48), and the secret that makes it.

A client logs in by SCRAM with the token's id as its name and the token's HMAC, in base64, as its
password. The HMAC follows from the broker's secret and the id, so it is kept nowhere.
"""

import base64
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from broker.security.credentials import (
    MIN_ITERATIONS,
    Credential,
    Mechanism,
    derived,
    salt_of,
    salted,
)

_DIGEST = "sha512"
_MARK_OF = b"horolog-tokens"
_MARK_BYTES = 16


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token; users are named without their type, times are milliseconds since 1970.

    `latest_ms` is the time beyond which it cannot be renewed, `made_by` the mark of the secret that
    made it.
    """

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    latest_ms: int
    made_by: bytes
    credentials: Mapping[Mechanism, Credential]

    def may_be_changed_by(self, user: str) -> bool:
        """True for who may renew or end it: its owner and renewers, not who asked for it."""
        return user == self.owner or user in self.renewers

    def is_about(self, user: str) -> bool:
        """True for everybody whose name it bears."""
        return user == self.requester or self.may_be_changed_by(user)

    def has_ended(self, now_ms: int) -> bool:
        """True when nobody gets in by it any more."""
        return now_ms > min(self.expires_ms, self.latest_ms)

    def ending(self, expires_ms: int) -> "DelegationToken":
        """The same with another end, as far as it can last."""
        return replace(self, expires_ms=min(expires_ms, self.latest_ms))


@dataclass(frozen=True, slots=True)
class TokenKey:
    """The name of a token as a credential that let connections in."""

    token_id: str


class TokenSecret:
    """The broker's secret, `delegation.token.secret.key`."""

    def __init__(self, text: str) -> None:
        """An empty text makes no token."""
        self._key = text.encode()
        self.is_set: bool = bool(text)
        self.mark: bytes = hmac.digest(self._key, _MARK_OF, _DIGEST)[:_MARK_BYTES]
        """Tells this secret from others, and nothing about it."""

    def __repr__(self) -> str:
        """Without the secret."""
        return "TokenSecret()"

    def hmac_of(self, token_id: str) -> bytes:
        """The HMAC of the token of this id."""
        return hmac.digest(self._key, token_id.encode(), _DIGEST)

    def credential(self, token_id: str, mechanism: Mechanism) -> Credential:
        """The password of a token as SCRAM keeps it; takes milliseconds."""
        password, salt = base64.b64encode(self.hmac_of(token_id)), self._salt(token_id, mechanism)
        key = salted(mechanism, password, salt, MIN_ITERATIONS)
        return derived(mechanism, key, salt, MIN_ITERATIONS)

    def decoy(self, token_id: str, mechanism: Mechanism) -> Credential:
        """The credential of a token that is not there: nothing opens it, and nothing tells it."""
        size = mechanism.key_bytes
        stored, server = (
            self._told(purpose, token_id, mechanism)[:size] for purpose in ("stored", "server")
        )
        return Credential(self._salt(token_id, mechanism), MIN_ITERATIONS, stored, server)

    def _salt(self, token_id: str, mechanism: Mechanism) -> bytes:
        return salt_of(int.from_bytes(self._told("salt", token_id, mechanism)))

    def _told(self, purpose: str, token_id: str, mechanism: Mechanism) -> bytes:
        text = f"{purpose}\0{mechanism.name}\0{token_id}"
        return hmac.digest(self._key, text.encode(), _DIGEST)


def id_of(number: UUID) -> str:
    """A random id as Kafka writes it: 22 letters, digits, `-` and `_`."""
    return base64.urlsafe_b64encode(number.bytes).rstrip(b"=").decode()
