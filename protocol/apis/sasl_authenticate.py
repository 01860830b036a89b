"""SaslAuthenticate 0-2: the tokens by which a client proves who it is, one a request (KIP-152).

0. 1: for how long the proof holds (KIP-368). 2: flexible.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Bytes, Int16, Int64, String


@message(flexible_from=2)
class SaslAuthenticateRequest:
    """A token of the client; the mechanism says what is in it."""

    auth_bytes: bytes = field(Bytes)


@message(flexible_from=2)
class SaslAuthenticateResponse:
    """A token of the broker, or why there is none."""

    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)
    auth_bytes: bytes = field(Bytes)
    session_lifetime_ms: int = field(Int64, since=1, doc="0: no limit")


API = Api(36, "SaslAuthenticate", 0, 2, SaslAuthenticateRequest, SaslAuthenticateResponse)
