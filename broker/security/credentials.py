"""Credentials of SCRAM (RFC 5802, RFC 7677): what a broker keeps of a password.

Neither of the two keys lets its reader log in: a client proves that it knows the key that
`stored_key` is the hash of.
"""

import hashlib
import hmac
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

SALT_BITS = 130
_LETTERS = b"0123456789abcdefghijklmnopqrstuvwxyz"
MIN_ITERATIONS, MAX_ITERATIONS = 4096, 16384


class Mechanism(Enum):
    """The variants of SCRAM; values are their numbers in Kafka's requests."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        """As clients ask for it: `SCRAM-SHA-256`."""
        return self.name.replace("_", "-")

    @property
    def digest(self) -> str:
        """Name of the hash, for hashlib."""
        return "sha256" if self is Mechanism.SCRAM_SHA_256 else "sha512"

    @property
    def key_bytes(self) -> int:
        """Length of its keys and proofs."""
        return 32 if self is Mechanism.SCRAM_SHA_256 else 64


BY_SASL_NAME = {each.sasl_name: each for each in Mechanism}


class CredentialKey(NamedTuple):
    """A user may have one credential of each mechanism."""

    user: str
    mechanism: Mechanism


@dataclass(frozen=True, slots=True)
class Credential:
    """The secret of one user and mechanism; binary, but for the number of iterations."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        """Without the keys: an attacker could try passwords on them."""
        return f"Credential(iterations={self.iterations})"


def salt_of(number: int) -> bytes:
    """A salt of a random number, as Kafka's tools make them: 130 bits in letters and digits."""
    rest, digits = number % (1 << SALT_BITS), bytearray()
    while rest:
        rest, digit = divmod(rest, len(_LETTERS))
        digits.append(_LETTERS[digit])
    return bytes(reversed(digits))


def salted(mechanism: Mechanism, password: bytes, salt: bytes, iterations: int) -> bytes:
    """SaltedPassword; takes milliseconds, on purpose, and lets other threads run."""
    return hashlib.pbkdf2_hmac(mechanism.digest, password, salt, iterations)


def derived(
    mechanism: Mechanism, salted_password: bytes, salt: bytes, iterations: int
) -> Credential:
    """The credential of a SaltedPassword."""
    client_key = hmac.digest(salted_password, b"Client Key", mechanism.digest)
    stored_key = hashlib.new(mechanism.digest, client_key).digest()
    server_key = hmac.digest(salted_password, b"Server Key", mechanism.digest)
    return Credential(salt, iterations, stored_key, server_key)


def is_password(mechanism: Mechanism, credential: Credential, password: bytes) -> bool:
    """True when the credential was made of this password; as slow as `salted`."""
    salt, iterations = credential.salt, credential.iterations
    tried = derived(mechanism, salted(mechanism, password, salt, iterations), salt, iterations)
    return hmac.compare_digest(tried.stored_key, credential.stored_key)
