"""Settings of one listener: `listener.name.NAME.KEY`, NAME in small letters (Kafka).

KEY is max.connections, sasl.enabled.mechanisms, connections.max.reauth.ms, or one of TLS or
OAUTHBEARER; the last ones also as `listener.name.NAME.MECHANISM.KEY`, which wins. No class declares
them, since the names are the operator's: a key is made when a name is used.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from config.declare import keys_of
from config.key import ConfigKey, Spelling
from config.layers import Layer, candidates
from config.security.oauth import MECHANISM as OAUTHBEARER
from config.security.oauth import OauthConfig
from config.security.sasl import MECHANISMS, SaslMechanisms
from config.security.tls import CLIENT_AUTH, RENEWABLE, TlsConfig
from config.values import INT_MAX, count, millis

_PREFIX = "listener.name."
_MAX_CONNECTIONS = "max.connections"
_MECHANISMS = "sasl.enabled.mechanisms"
_REAUTH = "connections.max.reauth.ms"
_TLS_KEYS = {key.name: key for key in keys_of(TlsConfig)}
_OAUTH_KEYS = {key.name: key for key in keys_of(OauthConfig)}
_OF_MECHANISM = "|".join(each.lower() for each in MECHANISMS)
_NAME = re.compile(
    r"listener\.name\.(?P<listener>[a-z0-9_.-]{1,200}?)\."
    rf"((?P<mechanism>{_OF_MECHANISM})\.(?=connections|(horolog\.)?sasl\.oauthbearer))?"
    rf"(?P<key>{_MAX_CONNECTIONS}|{_MECHANISMS}|{_REAUTH}|ssl\..+|(horolog\.)?sasl\.oauthbearer\..+)",
    re.ASCII,
)


@lru_cache(maxsize=256)
def listener_key(name: str) -> ConfigKey | None:
    """The key that a name means; None when it is no setting of a listener."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    key = found["key"]
    if key == _MECHANISMS:
        return _mechanisms_key(name)
    if key == _REAUTH:
        return _reauth_key(name)
    if key in _OAUTH_KEYS:
        is_of_others = found["mechanism"] not in (None, OAUTHBEARER.lower())
        return None if is_of_others else _prefixed(_OAUTH_KEYS[key], name)
    if key != _MAX_CONNECTIONS:
        plain = _TLS_KEYS.get(key)
        return None if plain is None else _prefixed(plain, name)
    return ConfigKey(
        name=name,
        attribute="",
        type=count(1),
        default=INT_MAX,
        default_text=str(INT_MAX),
        doc="Connections at one time by this listener (as Kafka: no limit).",
        on_topic=(),
        on_broker=(Spelling(name, count(1)),),
        dynamic=True,
        importance="medium",
        sensitive=False,
    )


def listener_of(key: ConfigKey) -> str:
    """The listener that a key is for, as `Listener.name` has it."""
    found = _NAME.fullmatch(key.name)
    assert found is not None
    return found["listener"].upper()


def listener_keys(layers: Iterable[Layer]) -> list[ConfigKey]:
    """The keys of listeners that are set, in the order of their names."""
    names = {name for layer in layers for name in layer.settings if name.startswith(_PREFIX)}
    return [key for key in map(listener_key, sorted(names)) if key is not None]


def max_connections(layers: Sequence[Layer]) -> dict[str, int]:
    """Connections at one time by listener, of those that have such a limit."""
    return {
        listener_of(key): next(candidates(key, layers)).setting.value
        for key in listener_keys(layers)
        if key.name.endswith(_MAX_CONNECTIONS)
    }


def sasl_mechanisms(layers: Sequence[Layer]) -> dict[str, tuple[str, ...]]:
    """Mechanisms of SASL by listener, of those that have their own."""
    return {
        listener_of(key): next(candidates(key, layers)).setting.value
        for key in listener_keys(layers)
        if key.name.endswith(_MECHANISMS)
    }


def reauth_ms(listener: str, mechanism: str, layers: Sequence[Layer]) -> int | None:
    """`connections.max.reauth.ms` of a listener's mechanism; None where it has none of its own."""
    prefix = f"{_PREFIX}{listener.lower()}"
    names = (f"{prefix}.{mechanism.lower()}.{_REAUTH}", f"{prefix}.{_REAUTH}")
    found: int | None = _best([_reauth_key(name) for name in names], layers)
    return found


def tls_config(listener: str, layers: Sequence[Layer], *, has_sasl: bool) -> TlsConfig:
    """The TLS settings of a listener: what is set for it alone wins, in whatever layer.

    As in Kafka, clients that authenticate by SASL are asked for a certificate only where that is
    set for their listener alone.
    """
    values: dict[str, Any] = {}
    for plain in _TLS_KEYS.values():
        own = _prefixed(plain, f"{_PREFIX}{listener.lower()}.{plain.name}")
        keys = [own] if has_sasl and plain.name == CLIENT_AUTH else [own, plain]
        best = _best(keys, layers)
        if best is not None:
            values[plain.attribute] = best
    return TlsConfig(**values)


def oauth_config(listener: str, layers: Sequence[Layer]) -> OauthConfig:
    """The OAUTHBEARER settings of a listener, by the same rule."""
    prefix = f"{_PREFIX}{listener.lower()}"
    values: dict[str, Any] = {}
    for plain in _OAUTH_KEYS.values():
        names = (f"{prefix}.{OAUTHBEARER.lower()}.{plain.name}", f"{prefix}.{plain.name}")
        best = _best([*(_prefixed(plain, name) for name in names), plain], layers)
        if best is not None:
            values[plain.attribute] = best
    return OauthConfig(**values)


def _best(keys: Iterable[ConfigKey], layers: Sequence[Layer]) -> Any:
    """The value of the first of these keys that is set; None when none is."""
    found = (found.setting.value for key in keys for found in candidates(key, layers))
    return next(found, None)


def renewed_listener(name: str) -> str | None:
    """The listener whose certificates a setting is about; None for any other setting."""
    found = _NAME.fullmatch(name)
    return found["listener"].upper() if found is not None and found["key"] in RENEWABLE else None


def _prefixed(plain: ConfigKey, name: str) -> ConfigKey:
    spelling = Spelling(name, plain.type)
    return replace(plain, name=name, on_broker=(spelling,), dynamic=plain.name in RENEWABLE)


def _mechanisms_key(name: str) -> ConfigKey:
    kind = SaslMechanisms()
    return ConfigKey(
        name=name,
        attribute="",
        type=kind,
        default=(),
        default_text="",
        doc="How clients of this listener prove who they are, in place of sasl.enabled.mechanisms.",
        on_topic=(),
        on_broker=(Spelling(name, kind),),
        dynamic=False,
        importance="medium",
        sensitive=False,
    )


def _reauth_key(name: str) -> ConfigKey:
    return ConfigKey(
        name=name,
        attribute="",
        type=millis(),
        default=0,
        default_text="0",
        doc="Clients prove again who they are after so long: connections.max.reauth.ms of these.",
        on_topic=(),
        on_broker=(Spelling(name, millis()),),
        dynamic=False,
        importance="medium",
        sensitive=False,
    )
