"""Sets of keys (JWKS, RFC 7517) that a provider publishes: which of them tokens may be signed with.

Only asymmetric keys for signatures count, of sizes whose arithmetic is bounded; others in the set
are left out. Libraries do the rest. A set is a stranger's text until it was read.
"""

import json
from typing import Any, NamedTuple

from joserfc.jwk import JWKRegistry, Key, KeySet, RSAKey
from joserfc.jws import JWSRegistry

from broker.security.sasl.oauthbearer import BadKeys

MOST_KEYS = 100
MOST_BYTES = 1024 * 1024
_PUBLIC = ("kty", "kid", "use", "alg", "n", "e", "crv", "x", "y")
_KINDS = ("RSA", "EC", "OKP")
_LEAST_RSA_BITS, _MOST_RSA_BITS = 2048, 8192
_MOST_TEXT = 2048  # characters of a number: 8192 bits take 1366
_MOST_EXPONENT_TEXT = 6  # characters: 32 bits


class SigningKeys(NamedTuple):
    """The keys in force, and the algorithms that they sign with: never `none`, never HS256."""

    keys: KeySet
    algorithms: frozenset[str]


def read_keys(text: bytes) -> SigningKeys:
    """The keys in a set. Raises BadKeys when it is none, or none of them can be used."""
    if len(text) > MOST_BYTES:
        raise BadKeys(f"the set of keys has more than {MOST_BYTES} bytes")
    try:
        listed = json.loads(text)["keys"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadKeys(f"not a set of keys ({type(error).__name__})") from None
    if not isinstance(listed, list) or len(listed) > MOST_KEYS:
        raise BadKeys(f"not a list of at most {MOST_KEYS} keys")
    usable = [key for each in listed if (key := _key(each)) is not None]
    if not usable:
        raise BadKeys("no asymmetric key for signatures is in the set")
    keys = KeySet(usable)
    return SigningKeys(keys, frozenset(_algorithms(keys)))


def _key(found: Any) -> Key | None:
    """A key of the set, without private parts; None when it is not for us."""
    if not isinstance(found, dict) or found.get("kty") not in _KINDS:
        return None
    public = {name: found[name] for name in _PUBLIC if name in found}
    is_short = all(isinstance(each, str) and len(each) <= _MOST_TEXT for each in public.values())
    if not is_short or len(public.get("e", "")) > _MOST_EXPONENT_TEXT:
        return None
    try:
        key = JWKRegistry.import_key(public)
        key.check_use("sig")
        return key if _has_good_size(key) else None
    except Exception:  # noqa: BLE001 - whatever is wrong with a key, the others count
        return None


def _has_good_size(key: Key) -> bool:
    if not isinstance(key, RSAKey):
        return True
    return _LEAST_RSA_BITS <= key.public_key.key_size <= _MOST_RSA_BITS


def _algorithms(keys: KeySet) -> list[str]:
    """Algorithms that some key of the set is for, as the library knows them."""
    every = list(JWSRegistry.algorithms)
    return [each.name for each in JWSRegistry.filter_algorithms(keys, every)]
