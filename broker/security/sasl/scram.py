"""SCRAM-SHA-256 and -512, the broker's side (RFC 5802, RFC 7677), as Kafka's clients speak it.

Two tokens of the client, two of ours. All that is wrong with a client ends at the second one and in
one text, so that nobody can ask which users there are. With the extension `tokenauth=true` the name
is that of a delegation token (KIP-48). Names and passwords are taken as UTF-8 without SASLprep, as
Kafka does. Signatures go over the received bytes. Beyond Kafka: the channel binding must repeat the
first header, and an extension that the sender calls mandatory (`m=`) fails.

Nothing here searches with regular expressions: the bytes are a stranger's.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from typing import Protocol

from broker.security.credentials import Credential, Mechanism
from broker.security.sasl.exchange import InvalidCredentials, Proof
from storage.env import Rng

NONCE_NUMBERS = 3  # of 64 bits
PLAIN_HEADER = b"n,"
BY_TOKEN = b"tokenauth=true"


class Malformed(ValueError):  # noqa: N818
    """A token that RFC 5802 does not allow."""


@dataclass(frozen=True, slots=True)
class FirstToken:
    """The client's first token, in its parts."""

    header: bytes  # `n,` or `n,a=NAME`, with the comma behind it
    bare: bytes
    user: str
    authzid: str
    nonce: bytes
    by_token: bool
    """True when `user` is the id of a delegation token (KIP-48)."""


def first_token(token: bytes) -> FirstToken:
    """Reads `n,[a=authzid],n=user,r=nonce[,extensions]`. Raises Malformed."""
    if not token.startswith(PLAIN_HEADER):
        raise Malformed("the client asks for channel binding")
    authzid, comma, bare = token[len(PLAIN_HEADER) :].partition(b",")
    if not comma:
        raise Malformed("no header")
    attributes = bare.split(b",")
    if len(attributes) < 2:
        raise Malformed("a user and a nonce are needed")
    nonce = _value(attributes[1], b"r=")
    _check_nonce(nonce)
    _check_extensions(attributes[2:])
    user = _name(_value(attributes[0], b"n="))
    if not user:
        raise Malformed("no user")
    other = _name(_value(authzid, b"a=")) if authzid else ""
    by_token = any(each.lower() == BY_TOKEN for each in attributes[2:])
    return FirstToken(token[: len(token) - len(bare)], bare, user, other, nonce, by_token)


@dataclass(frozen=True, slots=True)
class FinalToken:
    """The client's last token, in its parts."""

    binding: bytes
    nonce: bytes
    without_proof: bytes
    proof: bytes


def final_token(token: bytes) -> FinalToken:
    """Reads `c=binding,r=nonce[,extensions],p=proof`. Raises Malformed."""
    without_proof, found, proof = token.rpartition(b",p=")
    attributes = without_proof.split(b",")
    if not found or len(attributes) < 2:
        raise Malformed("a binding, a nonce and a proof are needed")
    binding = _decoded(_value(attributes[0], b"c="))
    nonce = _value(attributes[1], b"r=")
    _check_extensions(attributes[2:])
    return FinalToken(binding, nonce, without_proof, _decoded(proof))


class Keeper(Protocol):
    """Keeps credentials by name: of users, or of delegation tokens."""

    def credential_or_decoy(self, name: str, mechanism: Mechanism, /) -> Credential:
        """The credential of a name; of an unknown one, a credential without a password."""

    def proof(self, name: str, mechanism: Mechanism, credential: Credential, /) -> Proof | None:
        """The meaning of a log-in by this credential; None when it is not in force (any more)."""


class ScramExchange:
    """One authentication. Used from the event loop: a few hashes of short texts."""

    def __init__(self, mechanism: Mechanism, users: Keeper, tokens: Keeper, rng: Rng) -> None:
        """Waits for the client's first token."""
        self.claimed = ""
        self.proven: Proof | None = None
        self._mechanism = mechanism
        self._users = users
        self._tokens = tokens
        self._rng = rng
        self._first: FirstToken | None = None
        self._challenge = b""

    def step(self, token: bytes) -> bytes:
        """The answer to a token. Raises InvalidCredentials."""
        try:
            if self._first is None:
                return self._challenged(first_token(token))
            return self._proven(self._first, final_token(token))
        except Malformed:
            raise InvalidCredentials from None

    def _challenged(self, first: FirstToken) -> bytes:
        self._first = first
        self.claimed = first.user
        self._keeper = self._tokens if first.by_token else self._users
        self._credential = self._keeper.credential_or_decoy(first.user, self._mechanism)
        numbers = (self._rng.uint64() for _ in range(NONCE_NUMBERS))
        own = "".join(f"{number:016x}" for number in numbers)
        salt = base64.b64encode(self._credential.salt)
        self._challenge = b"r=%b%b,s=%b,i=%d" % (
            first.nonce,
            own.encode(),
            salt,
            self._credential.iterations,
        )
        return self._challenge

    def _proven(self, first: FirstToken, final: FinalToken) -> bytes:
        digest, credential = self._mechanism.digest, self._credential
        nonce = self._challenge[2:].partition(b",")[0]
        signed = b",".join((first.bare, self._challenge, final.without_proof))
        signature = hmac.digest(credential.stored_key, signed, digest)
        if len(final.proof) != len(signature):
            raise InvalidCredentials
        client_key = bytes(a ^ b for a, b in zip(final.proof, signature, strict=True))
        proves = hmac.compare_digest(
            hashlib.new(digest, client_key).digest(), credential.stored_key
        )
        # librdkafka before 2.6.1 repeats its own part; Kafka looks at the end alone.
        is_same_exchange = final.nonce in (nonce, first.nonce + nonce)
        is_bound = final.binding == first.header
        is_self = first.authzid in ("", first.user)
        proof = self._keeper.proof(first.user, self._mechanism, credential)
        if not (proves and is_same_exchange and is_bound and is_self) or proof is None:
            raise InvalidCredentials
        self.proven = proof
        return b"v=" + base64.b64encode(hmac.digest(credential.server_key, signed, digest))


def _value(attribute: bytes, name: bytes) -> bytes:
    if not attribute.startswith(name):
        raise Malformed(f"expected {name!r}")
    return attribute[len(name) :]


def _check_nonce(nonce: bytes) -> None:
    if not nonce or not all(0x21 <= byte <= 0x7E for byte in nonce):
        raise Malformed("a nonce is printable")


def _check_extensions(attributes: list[bytes]) -> None:
    for each in attributes:
        name, equals, _ = each.partition(b"=")
        if not equals or not name.isalpha() or name == b"m":
            raise Malformed("not an extension that may be ignored")


def _name(text: bytes) -> str:
    """A name as the token writes it, where `=2C` is a comma and `=3D` an equals sign."""
    parts = text.split(b"=")
    for each in parts[1:]:
        if not each.startswith((b"2C", b"3D")):
            raise Malformed("a lone =")
    joined = parts[0] + b"".join(
        (b"," if each.startswith(b"2C") else b"=") + each[2:] for each in parts[1:]
    )
    try:
        name = joined.decode()
    except UnicodeDecodeError:
        raise Malformed("a name is UTF-8") from None
    if "\0" in name:
        raise Malformed("a name has no NUL")
    return name


def _decoded(text: bytes) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Malformed("not base64") from None
