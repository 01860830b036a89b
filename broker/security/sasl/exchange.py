"""One exchange of SASL, whatever its mechanism: tokens in, tokens out, a user at the end."""

from collections.abc import Hashable
from typing import NamedTuple, Protocol

from broker.runtime.deferred import Deferred


class AuthenticationFailed(Exception):  # noqa: N818 - an outcome, not a fault
    """The client is not who it says; the text is what it may read (SASL_AUTHENTICATION_FAILED)."""

    def __init__(self, text: str = "", detail: str = "") -> None:
        """`detail` is for the operator alone; without one the text is."""
        super().__init__(text)
        self.detail = detail or text


class InvalidCredentials(AuthenticationFailed):
    """The same, in the one text that a mechanism has for everything; the gate writes it."""


class Proof(NamedTuple):
    """The name of a client, what proved it, and for how long that counts."""

    user: str
    credential: Hashable | None
    """The key of what proved the name, by which its keeper says `Lobby.removed` or `Lobby.ends` of
    it. None: it has no keeper here.
    """
    ends_ms: int | None = None
    """Wall time at which the credential ends by itself, in ms since 1970; None: it does not."""
    by_token: bool = False
    """True for a delegation token (KIP-48), which gives no right to make another."""


class Exchange(Protocol):
    """The broker's side of one authentication."""

    claimed: str
    """The name that the client gives itself, for the audit; empty before it gave one."""
    proven: Proof | None
    """Set once the client's name is proven."""

    def step(self, token: bytes) -> bytes | Deferred[bytes]:
        """The answer to a token, at once or later. Raises (or fails with) AuthenticationFailed."""
