"""The broker's settings with those of its listeners: TLS, SASL, tokens of the HTTP port."""

from collections.abc import Sequence
from dataclasses import replace

from config.broker import BrokerConfig
from config.errors import ConfigError
from config.fleet.rules import check_fleet
from config.layers import Layer, candidates, snapshot
from config.listener_keys import (
    listener_keys,
    listener_of,
    max_connections,
    oauth_config,
    reauth_ms,
    sasl_mechanisms,
    tls_config,
)
from config.names import broker_name
from config.resources.group import check_bounds
from config.rules import check_broker, check_topic
from config.security.oauth import MECHANISM as OAUTHBEARER
from config.security.protocols import HTTP, SASL, SSL
from config.tier.rules import check_tier, check_tier_defaults
from config.topic import TopicConfig


def broker_snapshot(layers: Sequence[Layer]) -> BrokerConfig:
    """The broker's settings, with those of its listeners."""
    config = snapshot(BrokerConfig, layers)
    if config.sasl_listeners:
        config = _with_sasl(config, layers)
    config = _with_http_tokens(config, layers)
    with_tls = {each.name: config.protocol_of(each.name) for each in config.tls_listeners}
    if config.http_has_tls:
        with_tls[HTTP] = SSL
    of_listeners = {key.name: listener_of(key) for key in listener_keys(layers)}
    if not with_tls and not of_listeners:
        return config
    return replace(
        config,
        listener_max_connections=max_connections(layers),
        listener_tls={
            name: tls_config(name, layers, has_sasl=protocol in SASL)
            for name, protocol in with_tls.items()
        },
        listener_of_key=of_listeners,
    )


def _with_sasl(config: BrokerConfig, layers: Sequence[Layer]) -> BrokerConfig:
    """The same with what each listener with SASL has of its own."""
    config = replace(config, listener_sasl_mechanisms=sasl_mechanisms(layers))
    taken = [
        (each.name, way)
        for each in config.sasl_listeners
        for way in config.mechanisms_of(each.name)
    ]
    times = {(name, way): reauth_ms(name, way, layers) for name, way in taken}
    return replace(
        config,
        listener_oauth={
            name: oauth_config(name, layers) for name, way in taken if way == OAUTHBEARER
        },
        listener_reauth_ms={key: most for key, most in times.items() if most is not None},
    )


def _with_http_tokens(config: BrokerConfig, layers: Sequence[Layer]) -> BrokerConfig:
    """The same with the rules for tokens of the HTTP port, which takes none without them."""
    ways = sasl_mechanisms(layers).get(HTTP)
    if ways is None or not config.is_of_http_port(HTTP):
        return config
    oauth = {HTTP: oauth_config(HTTP, layers)} if OAUTHBEARER in ways else {}
    return replace(
        config,
        listener_sasl_mechanisms={**config.listener_sasl_mechanisms, HTTP: ways},
        listener_oauth={**config.listener_oauth, **oauth},
    )


def checked_broker(layers: Sequence[Layer]) -> BrokerConfig:
    """The broker's snapshot; ConfigError, with the place of the setting, when keys contradict."""
    config = broker_snapshot(layers)
    try:
        check_broker(config)
        check_tier(config)
        check_bounds(config)
        defaults = snapshot(TopicConfig, layers)
        check_topic(defaults)
        check_fleet(config, defaults)
        if config.remote_log_storage_system_enable:
            check_tier_defaults(defaults)
    except ConfigError as error:
        found = next(candidates(broker_name(error.key).keys[0], layers), None)
        raise error.at(found.setting.where if found else "") from error
    return config
