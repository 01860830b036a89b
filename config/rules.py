"""Rules that hold between keys. Each takes a whole snapshot and names the key to change."""

from collections.abc import Mapping

from config.broker import BrokerConfig
from config.endpoints import Address, Listener
from config.errors import ConfigError
from config.security.oauth import ENDPOINT, LOOPBACK
from config.security.oauth import MECHANISM as OAUTHBEARER
from config.security.oauth import what_is_missing as what_oauth_misses
from config.security.protocols import HTTP, SASL_PLAINTEXT, SASL_SSL, SSL
from config.security.tls import what_is_missing
from config.topic import TopicConfig

SESSION, HEARTBEAT = "session.timeout.ms", "heartbeat.interval.ms"
REAUTH = ".connections.max.reauth.ms"
_HTTP_PROTOCOL = "horolog.http.security.protocol"


def check_broker(config: BrokerConfig) -> None:
    """ConfigError when settings of the broker contradict one another."""
    _check_ports(config.listeners)
    if not config.client_listeners:
        raise ConfigError(
            "controller.listener.names",
            "controller.listener.names leaves no listener for clients: add one to listeners",
        )
    _check_protocols(config)
    names = {listener.name for listener in config.listeners}
    for advertised in config.advertised_listeners:
        if advertised.name not in names:
            raise ConfigError(
                "advertised.listeners",
                f"advertised.listeners names {advertised.name}, which listeners does not: "
                f"{', '.join(sorted(names))}",
            )
        _check_can_be_dialled("advertised.listeners", advertised)
    _check_admin_listener(config)
    _check_passwords_are_hidden(config)
    _check_oauth(config)
    _check_groups("share", config.share_group_bounds)
    _check_groups("streams", config.streams_group_bounds)
    if config.group_streams_num_standby_replicas > config.group_streams_max_standby_replicas:
        key, most = "group.streams.num.standby.replicas", "group.streams.max.standby.replicas"
        raise ConfigError(key, f"{key} must be less than or equal to {most}")
    for published in config.horolog_published_listeners:
        _check_can_be_dialled("horolog.published.listeners", published)


def _check_groups(kind: str, bounds: Mapping[str, tuple[int, int, int]]) -> None:
    """Kafka's rules for `group.share.*` and `group.streams.*`: each default within its bounds."""
    for name, (least, value, most) in bounds.items():
        low, key, high = (f"group.{kind}.{bound}{name}" for bound in ("min.", "", "max."))
        if least > most:
            raise ConfigError(high, f"{high} must be greater than or equal to {low}")
        if value < least:
            raise ConfigError(key, f"{key} must be greater than or equal to {low}")
        if value > most:
            raise ConfigError(key, f"{key} must be less than or equal to {high}")
    if bounds[HEARTBEAT][1] >= bounds[SESSION][1]:
        key = f"group.{kind}.{HEARTBEAT}"
        raise ConfigError(key, f"{key} must be less than group.{kind}.{SESSION}")


def check_listener_keys(config: BrokerConfig) -> None:
    """ConfigError when a `listener.name.NAME.KEY` is in vain: no such listener, no TLS, no SASL."""
    names = {listener.name for listener in config.client_listeners}
    sasl_names = {listener.name for listener in config.sasl_listeners}
    for key, name in config.listener_of_key.items():
        if config.is_of_http_port(name) and (".ssl." in key or _is_of_sasl(key)):
            _check_http_key(config, key)
            continue
        if name not in names:
            raise ConfigError(key, f"{key}: listeners has no {name}: {', '.join(sorted(names))}")
        if _is_of_sasl(key) and name not in sasl_names:
            raise ConfigError(
                key,
                f"{key}: {name} has no SASL: listener.security.protocol.map does not say "
                f"{SASL_PLAINTEXT} or {SASL_SSL}",
            )
        if ".ssl." in key and name not in config.listener_tls:
            raise ConfigError(
                key, f"{key}: {name} has no TLS: listener.security.protocol.map does not say {SSL}"
            )


def _check_http_key(config: BrokerConfig, key: str) -> None:
    if _is_of_sasl(key):
        _check_http_tokens(config, key)
    elif not config.http_has_tls:
        raise ConfigError(
            key, f"{key}: the HTTP port has no TLS: set {_HTTP_PROTOCOL}=SSL, or leave the key out"
        )


def _check_http_tokens(config: BrokerConfig, key: str) -> None:
    """Tokens of a provider name users, whose rights an authorizer knows."""
    if key.endswith(REAUTH):
        raise ConfigError(key, f"{key}: the HTTP port has no sessions: leave the key out")
    if config.listener_sasl_mechanisms.get(HTTP) != (OAUTHBEARER,):
        raise ConfigError(
            key,
            f"{key}: of SASL, the HTTP port has {OAUTHBEARER} alone, and with "
            f"listener.name.http.sasl.enabled.mechanisms={OAUTHBEARER}; users with passwords need "
            "no setting",
        )
    if config.horolog_http_listener is None:
        raise ConfigError(key, f"{key}: there is no HTTP port: set horolog.http.listener")
    if not config.authorizer_class_name:
        raise ConfigError(
            key,
            f"{key}: tokens name users, and without an authorizer users have no rights at the HTTP "
            "port: set authorizer.class.name",
        )


def check_topic(config: TopicConfig, topic: str | None = None) -> None:
    """ConfigError when settings contradict one another: a topic's, or the broker's for all."""
    least, most = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    if least > most:
        prefix, of_topic = ("log.cleaner.", "") if topic is None else ("", f" of topic {topic}")
        raise ConfigError(
            f"{prefix}min.compaction.lag.ms",
            f"{prefix}min.compaction.lag.ms{of_topic} is {least}, more than "
            f"{prefix}max.compaction.lag.ms, which is {most}: a record cannot wait longer for its "
            "compaction than it may",
        )


def _check_protocols(config: BrokerConfig) -> None:
    """Nothing is served in the clear because of a name that nobody mapped."""
    if config.http_has_tls and any(each.name == HTTP for each in config.client_listeners):
        raise ConfigError(
            _HTTP_PROTOCOL,
            f"{_HTTP_PROTOCOL}: listener.name.http. is for the HTTP port: give the listener HTTP "
            "another name",
        )
    for listener in config.client_listeners:
        protocol = config.protocol_of(listener.name)
        if protocol is None and config.is_secured:
            raise ConfigError(
                "listener.security.protocol.map",
                f"listener.security.protocol.map has no protocol for {listener.name}: add "
                f"{listener.name}:SSL or {listener.name}:PLAINTEXT",
            )
    for name, tls in config.listener_tls.items():
        missing = what_is_missing(tls)
        if missing is not None:
            key, reason = missing
            raise ConfigError(key, f"{key} of listener {name}: {reason}")


def _check_ports(listeners: tuple[Listener, ...]) -> None:
    """Two listeners cannot have one address; port 0 is a different port each time."""
    seen: set[tuple[str, int]] = set()
    for listener in listeners:
        address = (listener.host, listener.port)
        if listener.port and address in seen:
            raise ConfigError("listeners", f"listeners: {listener} has the address of another one")
        seen.add(address)


def _check_can_be_dialled(key: str, advertised: Listener) -> None:
    missing = "name the host that clients use" if advertised.is_wildcard else "name a port"
    if advertised.is_wildcard or advertised.port == 0:
        raise ConfigError(
            key,
            f"{key}: no client can connect to {advertised}; {missing}, or leave the setting out to "
            "tell each client the address it reached",
        )


def _check_admin_listener(config: BrokerConfig) -> None:
    key, name = "horolog.admin.listener.name", config.horolog_admin_listener_name
    others = [each.name for each in config.client_listeners if each.name != name]
    if name and len(others) == len(config.client_listeners):
        raise ConfigError(key, f"{key}: listeners has no {name}: {', '.join(sorted(others))}")
    if name and not others:
        raise ConfigError(
            key, f"{key}: {name} is the only listener: clients need one of their own beside it"
        )


def _check_passwords_are_hidden(config: BrokerConfig) -> None:
    for listener in config.sasl_listeners:
        is_clear = listener not in config.tls_listeners and listener.host not in LOOPBACK
        if is_clear and config.shows_passwords(listener.name):
            raise ConfigError(
                "sasl.enabled.mechanisms",
                f"sasl.enabled.mechanisms: PLAIN shows passwords, and OAUTHBEARER tokens, to the "
                f"network of {listener}: use SCRAM-SHA-256 or SCRAM-SHA-512, or TLS, or set "
                "horolog.sasl.plaintext.allowed=true",
            )


def _check_oauth(config: BrokerConfig) -> None:
    """Tokens are checked against keys, an issuer and an audience; on loopback they need not be."""
    key = "horolog.sasl.oauthbearer.unsecured"
    is_unsecured = config.horolog_sasl_oauthbearer_unsecured
    seen: list[Listener | Address] = [
        each for each in config.client_listeners if each.host not in LOOPBACK
    ]
    http = config.horolog_http_listener
    if http is not None and HTTP in config.listener_oauth and http.host not in LOOPBACK:
        seen.append(http)
    if is_unsecured and seen:
        raise ConfigError(
            key, f"{key}: anybody could log in as anybody by {seen[0]}, which is not loopback"
        )
    for name, oauth in config.listener_oauth.items():
        if is_unsecured and oauth.jwks_endpoint_url:
            raise ConfigError(key, f"{key}: {ENDPOINT} of listener {name} is set too: leave one")
        missing = None if is_unsecured else what_oauth_misses(oauth)
        if missing is not None:
            raise ConfigError(missing[0], f"{missing[0]} of listener {name}: {missing[1]}")


def _is_of_sasl(key: str) -> bool:
    return ".sasl." in key or key.endswith(REAUTH)
