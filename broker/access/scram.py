"""The client's side of SCRAM (RFC 5802, RFC 7677)."""

import base64
import hashlib
import hmac

from broker.access.errors import BrokerNotProven

DIGESTS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MOST_ITERATIONS = 100 * 16_384
"""A broker that asks for more than this would only keep the command busy."""


class ScramClient:
    """One log-in. `nonce` is random and printable."""

    def __init__(
        self, mechanism: str, user: str, password: str, nonce: str, *, by_token: bool
    ) -> None:
        """`mechanism` as in `DIGESTS`. With `by_token` the user is the id of a
        delegation token, the password its HMAC.
        """
        self._digest = DIGESTS[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={nonce}{',tokenauth=true' if by_token else ''}"
        self._signature = b""

    def first(self) -> bytes:
        """The first token."""
        return f"n,,{self._bare}".encode()

    def final(self, challenge: bytes) -> bytes:
        """The last token, to the broker's challenge. Raises BrokerNotProven."""
        nonce, salt, iterations = self._read(challenge.decode("utf-8", "replace"))
        digest = self._digest
        key = hashlib.pbkdf2_hmac(digest, self._password, salt, iterations)
        client_key = hmac.digest(key, b"Client Key", digest)
        without_proof = f"c=biws,r={nonce}"
        signed = b",".join((self._bare.encode(), challenge, without_proof.encode()))
        signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
        self._signature = hmac.digest(hmac.digest(key, b"Server Key", digest), signed, digest)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def check(self, answer: bytes) -> None:
        """BrokerNotProven unless the broker knows the password too."""
        expected = b"v=" + base64.b64encode(self._signature)
        if not hmac.compare_digest(answer.partition(b",")[0], expected):
            raise BrokerNotProven("it does not know the password")

    def _read(self, challenge: str) -> tuple[str, bytes, int]:
        parts = dict(each.partition("=")[::2] for each in challenge.split(","))
        try:
            nonce, iterations = parts["r"], int(parts["i"])
            salt = base64.b64decode(parts["s"], validate=True)
        except (KeyError, ValueError) as error:
            raise BrokerNotProven("its challenge is no SCRAM") from error
        if not nonce.startswith(self._nonce) or not 0 < iterations <= MOST_ITERATIONS:
            raise BrokerNotProven("its challenge is not for this log-in")
        return nonce, salt, iterations
