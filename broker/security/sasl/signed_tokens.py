"""Signed tokens (JWT, RFC 7519) of a provider: whose they are, and until when.

The library checks form, signature and claims; the algorithm must be one of the key set's. Names of
keys in a token (`jwk`, `jku`, `x5u`, `x5c`) are not believed, only its `kid` chooses a key of the
set. Required, beyond what a provider may leave out: exp, iat, the subject, issuer and audience.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import GuestProtocol, Key, KeySet
from joserfc.jws import JWSRegistry
from joserfc.jwt import ClaimsOption, JWTClaimsRegistry, Token, decode
from joserfc.registry import Header

from broker.security.sasl.exchange import Proof
from broker.security.sasl.jwks import SigningKeys
from broker.security.sasl.oauthbearer import BadToken, UnknownKey
from config.security.oauth import OauthConfig

MOST_NAME_CHARACTERS = 2048
LATEST_SECONDS = 253_402_300_799  # the end of the year 9999


class TokenRules:
    """The rules of one listener for tokens. Used from any thread."""

    def __init__(
        self, config: OauthConfig, now_ms: Callable[[], int], *, is_unsecured: bool = False
    ) -> None:
        """`is_unsecured`: tokens have no signature, nor need they name issuer and audience."""
        self._config = config
        self._now_ms = now_ms
        self._is_unsecured = is_unsecured
        wanted: dict[str, ClaimsOption] = {"exp": {"essential": True}}
        if not is_unsecured:
            wanted["iat"] = {"essential": True}
        if config.expected_issuer:
            wanted["iss"] = {"essential": True, "value": config.expected_issuer}
        if config.expected_audience:
            wanted["aud"] = {"essential": True, "values": list(config.expected_audience)}
        self._wanted = wanted

    def holder(self, token: str, keys: SigningKeys | None) -> Proof:
        """The user of a token. Raises BadToken, UnknownKey; `keys` is None of unsecured ones."""
        try:
            claims = self._decoded(token, keys).claims
            self._check(claims)
            return self._proof(claims)
        except BadToken:
            raise
        except InvalidKeyIdError as error:
            raise UnknownKey(str(error)) from None
        except JoseError as error:
            raise BadToken(str(error)) from None
        except Exception as error:  # noqa: BLE001 - the bytes are a stranger's
            raise BadToken(f"not a token ({type(error).__name__})") from None

    def _decoded(self, token: str, keys: SigningKeys | None) -> Token:
        if self._is_unsecured:
            return _unsigned(token)
        if keys is None:
            raise UnknownKey("no key was read so far")
        registry = _Registry(keys.algorithms)
        return decode(token, partial(_key_for, keys.keys), registry=registry, decoder_cls=_Claims)

    def _check(self, claims: dict[str, Any]) -> None:
        """Raises JoseError, BadToken."""
        now, skew = self._now_ms() // 1000, self._config.clock_skew_seconds
        JWTClaimsRegistry(now, skew, **self._wanted).validate(claims)
        _check_scope(claims.get(self._config.scope_claim_name))

    def _proof(self, claims: Mapping[str, Any]) -> Proof:
        ends_seconds = min(claims["exp"], LATEST_SECONDS)
        return Proof(self._name(claims), None, ends_ms=int(ends_seconds * 1000))

    def _name(self, claims: Mapping[str, Any]) -> str:
        name = claims.get(self._config.sub_claim_name)
        if not isinstance(name, str) or not name.strip() or len(name) > MOST_NAME_CHARACTERS:
            raise BadToken("the subject is no name")
        return name.strip()


class _Registry(JWSRegistry):
    """The library's rules, with the algorithms of a key set and no others."""

    max_header_length = 8192
    max_payload_length = 65_536
    max_signature_length = 2048

    def __init__(self, algorithms: frozenset[str]) -> None:
        super().__init__(algorithms=algorithms, strict_check_header=False)
        self._named = algorithms

    def get_alg(self, name: str) -> Any:
        """Of the set alone: an empty one allows nothing, where the library takes its defaults."""
        if name not in self._named:
            raise BadToken(f"algorithm {name!r:.40} is none of the key set's")
        return self.algorithms[name]

    def check_header(self, header: Header) -> None:
        """Refuses what a token calls critical: nothing beyond the standard is understood."""
        if "crit" in header or "b64" in header:
            raise BadToken("the header has critical parts")
        super().check_header(header)


def _key_for(keys: KeySet, token: GuestProtocol) -> Key | KeySet:
    """The key of a token without `kid`, where just one can be meant; else `kid` decides."""
    header = token.headers()
    if "kid" in header:
        return keys
    suitable = [key for key in keys if _suits(key, header["alg"])]
    return suitable[0] if len(suitable) == 1 else keys


def _suits(key: Key, algorithm: str) -> bool:
    try:
        JWSRegistry.algorithms[algorithm].check_key(key)
    except JoseError:
        return False
    return True


class _Claims(json.JSONDecoder):
    """JSON in which each name is there once and numbers are numbers."""

    def __init__(self) -> None:
        super().__init__(object_pairs_hook=_once, parse_constant=_no_number)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number")


def _unsigned(token: str) -> Token:
    """A token without a signature (RFC 7515, A.5), as Kafka's unsecured mode takes them."""
    registry = _Registry(frozenset({"none"}))
    return decode(token, lambda _: _no_key(), registry=registry, decoder_cls=_Claims)


def _no_key() -> Any:
    raise BadToken("a token without signature was expected")


def _check_scope(scope: object) -> None:
    """A word, or a list of different ones, as Kafka asks for; nothing is no scope."""
    words = [scope] if isinstance(scope, str) else scope if isinstance(scope, list) else []
    if not all(isinstance(each, str) and each.strip() for each in words):
        raise BadToken("a scope is no word")
    if len({each.strip() for each in words}) < len(words):
        raise BadToken("a scope is there twice")
