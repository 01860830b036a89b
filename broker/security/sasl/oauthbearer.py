"""OAUTHBEARER (RFC 7628), the broker's side: one token of a provider, as Kafka's clients send it.

A token that does not hold gets `{"status":"invalid_token"}` in an answer without error; what the
client says next, a byte 0x01, gets the failure with that text. SASL extensions are looked at for
their form and have no meaning, as in Kafka. Beyond Kafka: a client has one try a connection, and
`auth` may be there once.

Nothing here searches with regular expressions: the bytes are a stranger's.
"""

import string
from collections.abc import Callable
from typing import NamedTuple

from broker.runtime.deferred import Deferred
from broker.security.sasl.exchange import AuthenticationFailed, InvalidCredentials, Proof

INVALID_TOKEN = b'{"status":"invalid_token"}'
SEPARATOR = b"\x01"
MOST_DETAIL = 200  # characters
_NAME_BYTES = frozenset(range(1, 128)) - frozenset(b"=,")
_VALUE_BYTES = frozenset(range(0x20, 0x7F)) | frozenset(b"\t\r\n")
_TOKEN_BYTES = frozenset((string.ascii_letters + string.digits + "-_~+/.").encode())


class MalformedMessage(ValueError):  # noqa: N818
    """A message that RFC 7628 does not allow."""


class BadToken(Exception):  # noqa: N818 - an outcome, not a fault
    """A token that does not hold; the text is for the operator, never for the client."""


class UnknownKey(BadToken):
    """The token names a key that is not there, so far."""


class BadKeys(Exception):  # noqa: N818 - an outcome, not a fault
    """A set of keys that cannot be had or used; the text is for the operator."""


class FirstMessage(NamedTuple):
    """The client's message, in its parts."""

    authzid: str
    token: str
    extensions: dict[str, str]


Judge = Callable[[str], Proof | Deferred[Proof]]
"""The holder of a token, at once or later. Raises (or fails with) BadToken."""


def first_message(data: bytes) -> FirstMessage:
    """Reads `n,[a=NAME],^A auth=Bearer TOKEN^A[KEY=VALUE^A...]^A`. Raises MalformedMessage."""
    header, found, rest = data.partition(b"," + SEPARATOR)
    if not found or not header.startswith(b"n,"):
        raise MalformedMessage("no header")
    pairs = _pairs(rest)
    scheme, _, token = pairs.pop("auth", "").partition(" ")
    token = token.lstrip(" ")
    if scheme.lower() != "bearer" or not _is_token(token):
        raise MalformedMessage("auth is no bearer token")
    return FirstMessage(_authzid(header[2:]), token, pairs)


class OauthExchange:
    """One authentication: one token. Used from the event loop."""

    def __init__(self, judge: Judge) -> None:
        """Waits for the client's message."""
        self.proven: Proof | None = None
        self.claimed = ""
        self._judge = judge
        self._refusal = ""

    def step(self, token: bytes) -> bytes | Deferred[bytes]:
        """The answer to a message. Raises AuthenticationFailed."""
        if self._refusal:
            raise AuthenticationFailed(INVALID_TOKEN.decode(), self._refusal)
        try:
            message = first_message(token)
        except MalformedMessage as error:
            raise InvalidCredentials(detail=f"malformed message: {error}") from None
        self.claimed = message.authzid
        try:
            proof = self._judge(message.token)
        except BadToken as error:
            return self._refused(error)
        if isinstance(proof, Proof):
            return self._accepted(message.authzid, proof)
        return self._later(message.authzid, proof)

    def _later(self, authzid: str, proof: Deferred[Proof]) -> Deferred[bytes]:
        answer: Deferred[bytes] = Deferred()

        def judged(found: Proof | None, error: BaseException | None) -> None:
            if isinstance(error, BadToken):
                answer.resolve(self._refused(error))
            elif found is None:
                answer.fail(error or InvalidCredentials())
            else:
                try:
                    answer.resolve(self._accepted(authzid, found))
                except AuthenticationFailed as refused:
                    answer.fail(refused)

        proof.listen(judged)
        answer.when_abandoned(proof.abandon)
        return answer

    def _refused(self, error: BadToken) -> bytes:
        self._refusal = f"{error!s:.{MOST_DETAIL}}" or "bad token"
        return INVALID_TOKEN

    def _accepted(self, authzid: str, proof: Proof) -> bytes:
        if authzid not in ("", proof.user):
            raise AuthenticationFailed(
                f"Authentication failed: Client requested an authorization id ({authzid}) that is "
                f"different from the token's principal name ({proof.user})"
            )
        self.proven = proof
        return b""


def _authzid(text: bytes) -> str:
    """Text of `a=NAME`, in which `=2C` and `=3D` stay as they are written (Kafka's way)."""
    if not text:
        return ""
    name = text.removeprefix(b"a=")
    plain = name.replace(b"=2C", b"").replace(b"=3D", b"")
    if name == text or not name or not _NAME_BYTES.issuperset(plain):
        raise MalformedMessage("not an authorization id")
    return name.decode("ascii")


def _pairs(rest: bytes) -> dict[str, str]:
    if not rest.endswith(SEPARATOR * 2):
        raise MalformedMessage("no end")
    found: dict[str, str] = {}
    for each in rest[:-2].split(SEPARATOR):
        key, _, value = each.partition(b"=")
        if not (key.isalpha() and key.isascii() and value and _VALUE_BYTES.issuperset(value)):
            raise MalformedMessage("not KEY=VALUE")
        if key == b"auth" and "auth" in found:
            raise MalformedMessage("auth is there twice")
        found[key.decode("ascii")] = value.decode("ascii")
    return found


def _is_token(text: str) -> bool:
    bare = text.rstrip("=").encode("ascii")
    return bool(bare) and _TOKEN_BYTES.issuperset(bare)
