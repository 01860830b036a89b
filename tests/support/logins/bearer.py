"""Tokens of a provider for random log-ins: a few that hold, and forged ones of every kind."""

import base64
import json
import random
from typing import Any

from joserfc import jwt
from joserfc.jwk import OctKey

from broker.security.sasl.exchange import Proof
from broker.security.sasl.jwks import read_keys
from broker.security.sasl.signed_tokens import TokenRules
from config.security.oauth import OauthConfig
from tests.support.clients.issuer import AUDIENCE, NAME, Issuer, key_of, raw_token
from tests.support.logins.clients import damaged

NOW = 1_790_000_000
CONFIG = OauthConfig(
    jwks_endpoint_url="https://x/", expected_issuer=NAME, expected_audience=(AUDIENCE,)
)


class Bearer:
    """A provider, and the broker's rules for its tokens."""

    def __init__(self) -> None:
        """One key signs; another one is not known to the broker."""
        key = key_of()
        issuer, other = Issuer(key, now=lambda: NOW), Issuer(key_of(), now=lambda: NOW)
        self._keys = read_keys(json.dumps(issuer.published).encode())
        self._rules = TokenRules(CONFIG, lambda: NOW * 1000)
        self._good = (issuer.token(), issuer.token(seconds=60, scope="other"))
        claims = issuer.claims()
        secret = OctKey.import_key(json.dumps(issuer.published["keys"][0]).encode())
        self._forged = (
            raw_token({"alg": "none"}, claims),
            raw_token({"alg": "None", "kid": key.kid}, claims),
            jwt.encode({"alg": "HS256", "kid": key.kid}, claims, secret, algorithms=["HS256"]),
            other.token(header={"jwk": dict(other.keys[0].as_dict(private=False))}),
            other.token(header={"jku": "https://stranger.test/keys"}),
            issuer.token(seconds=-400),
            issuer.token(nbf=NOW + 4000),
            issuer.token(iss="https://stranger.test"),
            issuer.token(aud="another"),
            issuer.token(sub=None),
            issuer.token(exp=None),
            raw_token(
                {"alg": "ES256", "kid": key.kid, "crit": ["exp"], "exp": 1}, claims, bytes(64)
            ),
            raw_token({"alg": "ES256", "kid": key.kid}, "[" * 20_000),
            "a.b.c",
        )

    def holder(self, token: str) -> Proof:
        """The broker's verdict. Raises BadToken."""
        return self._rules.holder(token, self._keys)

    def message(self, rng: random.Random) -> bytes:
        """The client's message with one of the tokens, often damaged."""
        token = rng.choice(self._good if rng.random() < 0.5 else self._forged).encode()
        if rng.random() < 0.2:
            token = damaged(rng, token)
        authzid = rng.choice((b"", b"", b"a=alice", b"a=root"))
        extensions = rng.choice((b"", b"logicalCluster=a\x01", b"auth=x\x01"))
        return b"n," + authzid + b",\x01auth=Bearer " + token + b"\x01" + extensions + b"\x01"

    def proves(self, message: bytes) -> bool:
        """True when a message must let `alice` in."""
        bare = (b"n,,\x01auth=Bearer ", b"n,a=alice,\x01auth=Bearer ")
        rests = (b"\x01\x01", b"\x01logicalCluster=a\x01\x01")
        return any(
            message == begin + token.encode() + rest
            for begin in bare
            for token in self._good
            for rest in rests
        )

    def may_prove(self, message: bytes) -> bool:
        """True when a message may: small letters or large, and base64 has more than one way."""
        _, _, rest = message[message.lower().find(b"bearer ") :].partition(b" ")
        token = rest.lstrip(b" ").partition(b"\x01")[0]
        return _meaning(token) in {_meaning(good.encode()) for good in self._good}


def _meaning(token: bytes) -> Any:
    """The signed part, and the signature in binary."""
    signed, _, signature = token.rpartition(b".")
    try:
        return signed, base64.urlsafe_b64decode(signature + b"==")
    except ValueError:
        return signed, signature
