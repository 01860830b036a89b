"""The client's side of log-ins, as bytes: sound ones, and what a stranger makes of them."""

import base64
import hashlib
import hmac
import random
from typing import Any

from broker.security.credentials import Mechanism, salted
from protocol.apis import api_versions, metadata, sasl_authenticate, sasl_handshake
from protocol.codec import encode_bytes
from protocol.headers import request_header_bytes
from protocol.registry import api_of

USER, PASSWORD = "alice", b"pencil"
MOST_GROWTH_BYTES = 64


def frame(message: Any, version: int) -> bytes:
    """A request without its length."""
    api = api_of(type(message))
    body = encode_bytes(message, version) if api.has(version) else b""
    return bytes(request_header_bytes(api, version, 7, "walker") + body)


def versions(version: int = 3) -> bytes:
    """ApiVersions."""
    request = api_versions.ApiVersionsRequest(
        client_software_name="walker", client_software_version="1"
    )
    return frame(request, version)


def handshake(mechanism: str, version: int = 1) -> bytes:
    """SaslHandshake."""
    return frame(sasl_handshake.SaslHandshakeRequest(mechanism=mechanism), version)


def authenticate(token: bytes, version: int = 2) -> bytes:
    """SaslAuthenticate."""
    return frame(sasl_authenticate.SaslAuthenticateRequest(auth_bytes=token), version)


def other_request() -> bytes:
    """A request that is not for strangers."""
    return frame(metadata.MetadataRequest(), 9)


def plain(user: str = USER, password: bytes = PASSWORD, authzid: str = "") -> bytes:
    """The token of PLAIN."""
    return b"\0".join((authzid.encode(), user.encode(), password))


def scram_first(user: str, nonce: str) -> bytes:
    """The first token of SCRAM."""
    return f"n,,n={user},r={nonce}".encode()


def scram_final(mechanism: Mechanism, password: bytes, first: bytes, challenge: bytes) -> bytes:
    """The last token of SCRAM: the proof for a challenge of the broker."""
    nonce, salt, iterations = (each[2:] for each in challenge.split(b",", 2))
    secret = salted(mechanism, password, base64.b64decode(salt), int(iterations))
    without_proof = b"c=" + base64.b64encode(b"n,,") + b",r=" + nonce
    signed = b",".join((first[3:], challenge, without_proof))
    key = hmac.digest(secret, b"Client Key", mechanism.digest)
    stored = hashlib.new(mechanism.digest, key).digest()
    signature = hmac.digest(stored, signed, mechanism.digest)
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    return without_proof + b",p=" + base64.b64encode(proof)


def damaged(rng: random.Random, data: bytes) -> bytes:
    """The bytes with one to three changes: flipped, cut off, cut out, doubled, grown."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(changed) + 1)
        match rng.randrange(6):
            case 0 | 1 if at < len(changed):
                changed[at] ^= 1 << rng.randrange(8)
            case 2:
                del changed[at:]
            case 3:
                del changed[at : at + rng.randint(1, 8)]
            case 4:
                changed[at:at] = changed[: rng.randint(0, MOST_GROWTH_BYTES)]
            case _:
                changed[at:at] = rng.randbytes(rng.randint(1, 8))
    return bytes(changed)
