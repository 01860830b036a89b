"""Attacks on log-ins by tokens of a provider: forged ones, and ones that are dear to look at."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from joserfc import jwt
from joserfc.jwk import OctKey

from tests.support.attacks.on_log_ins import DifferenceError, again
from tests.support.attacks.target import ADMIN, KEYS, Attack, Stranger, Target
from tests.support.clients.issuer import Issuer, raw_token

BEARER = "OAUTHBEARER"


def _published(target: Target) -> Any:
    """The public key that the broker knows."""
    return json.loads((target.folder / KEYS).read_text())["keys"][0]


def _show_all(target: Target, tokens: Callable[[], str]) -> int:
    """Each on a connection of its own; none lets in."""

    def strike(client: Stranger) -> None:
        assert client.shake(BEARER) == 0
        message = b"n,,\x01auth=Bearer " + tokens().encode() + b"\x01\x01"
        code, answer = client.show(message)
        if code == 0 and b"invalid_token" not in answer:
            raise DifferenceError(f"a forged token lets in: {message!r:.300}")
        client.show(b"\x01")

    return again(target, strike)


def tokens_without_signature(target: Target) -> int:
    """The algorithm is `none`."""
    token = raw_token({"alg": "none"}, Issuer().claims(ADMIN))
    return _show_all(target, lambda: token)


def tokens_signed_by_the_public_key(target: Target) -> int:
    """The public key is the secret of HS256."""
    known = _published(target)
    key = OctKey.import_key(json.dumps(known).encode())
    header = {"alg": "HS256", "kid": known["kid"]}
    token = jwt.encode(header, Issuer().claims(ADMIN), key, algorithms=["HS256"])
    return _show_all(target, lambda: token)


def tokens_of_other_keys(target: Target) -> int:
    """Signed by a stranger's key under the name of the right one; the broker has to verify."""
    token = Issuer().token(ADMIN, header={"kid": _published(target)["kid"]})
    return _show_all(target, lambda: token)


def tokens_of_unknown_keys(target: Target) -> int:
    """Each names a key that nobody knows: the broker must not ask its provider each time."""
    issuer = Issuer()
    names: Iterator[int] = iter(range(1 << 30))
    return _show_all(target, lambda: issuer.token(ADMIN, header={"kid": f"k{next(names)}"}))


def tokens_that_bring_their_key(target: Target) -> int:
    """The key is in the header."""
    issuer = Issuer()
    token = issuer.token(ADMIN, header={"jwk": dict(issuer.keys[0].as_dict(private=False))})
    return _show_all(target, lambda: token)


def long_tokens(target: Target) -> int:
    """Sixty KB of claims."""
    token = Issuer().token(ADMIN, header={"kid": _published(target)["kid"]}, more="x" * 40_000)
    return _show_all(target, lambda: token)


def deep_tokens(target: Target) -> int:
    """Claims that are nested twenty thousand times."""
    header = {"alg": "ES256", "kid": _published(target)["kid"]}
    token = raw_token(header, b'{"sub":' + b"[" * 20_000, bytes(64))
    return _show_all(target, lambda: token)


ATTACKS: tuple[Attack, ...] = (
    tokens_without_signature, tokens_signed_by_the_public_key, tokens_of_other_keys,
    tokens_of_unknown_keys, tokens_that_bring_their_key, long_tokens, deep_tokens,
)  # fmt: skip
