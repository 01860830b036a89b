"""SaslHandshake 0-1: which mechanism a client wants to say who it is with.

0: tokens follow without headers. 1: they follow as SaslAuthenticate requests (KIP-152).
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, String


@message(flexible_from=None)
class SaslHandshakeRequest:
    """Mechanism that the client asks for."""

    mechanism: str = field(String)


@message(flexible_from=None)
class SaslHandshakeResponse:
    """Mechanisms of the broker."""

    error_code: int = field(Int16)
    mechanisms: list[str] = field(Array(String))


API = Api(17, "SaslHandshake", 0, 1, SaslHandshakeRequest, SaslHandshakeResponse)
