"""A listener with TLS: its certificate, and the clients that are not through the handshake yet."""

import ssl
from collections.abc import Callable
from typing import Protocol

from broker.runtime.request_context import Peer
from broker.security.certificates import Credentials

MOST_HALF_DONE = 256  # handshakes under way at one time: the oldest of more is ended
HANDSHAKE_BYTES = 64 * 1024  # from the client

OF_CERTIFICATES = frozenset({"certificate_refused", "no_certificate", "principal_refused"})
"""Reasons of failed handshakes that are failed authentications."""

_REASONS = {
    "NO_SHARED_CIPHER": "no_shared_cipher",
    "UNSUPPORTED_PROTOCOL": "protocol_version",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "no_certificate",
    "HTTP_REQUEST": "no_tls",
    "WRONG_VERSION_NUMBER": "no_tls",
}


class HalfDone(Protocol):
    """A connection whose handshake is under way."""

    def fail(self, reason: str, detail: object) -> None:
        """Ends it."""


class TlsListener:
    """One listener. `credentials` may be replaced at any time: they count for new connections."""

    def __init__(self, name: str, credentials: Credentials) -> None:
        """Nobody has come yet."""
        self.name = name
        self.credentials = credentials
        self.on_refused: Callable[[Peer, str], None] = lambda *_: None
        """Hears of clients that were refused for their certificate, with the reason."""
        self.failure = ""
        """The reason why the last renewal did not count; empty when it did."""
        self._half_done: dict[HalfDone, None] = {}

    @property
    def not_after_seconds(self) -> float:
        """Time since 1970 at which its certificate expires."""
        return self.credentials.certificate.not_after_ms / 1000

    def begun(self, connection: HalfDone) -> None:
        """A client came; it is one of the half done until `ended`."""
        if len(self._half_done) >= MOST_HALF_DONE:
            oldest = next(iter(self._half_done))
            oldest.fail("crowded", f"{MOST_HALF_DONE} handshakes are under way")
            self.ended(oldest)
        self._half_done[connection] = None

    def ended(self, connection: HalfDone) -> None:
        """Its handshake is done, or over."""
        self._half_done.pop(connection, None)


def reason_of(error: OSError) -> str:
    """The word for a failed handshake: one of a closed set, since it is a metric's label."""
    if not isinstance(error, ssl.SSLError):
        return "gave_up"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "certificate_refused"
    reason = error.reason or ""
    if "ALERT" in reason:
        return "refused_by_client"
    return _REASONS.get(reason, "malformed")
