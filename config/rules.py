"""Rules that hold between keys. Each takes a whole snapshot and names the key to change."""

from config.broker import BrokerConfig
from config.endpoints import Listener
from config.errors import ConfigError
from config.topic import TopicConfig


def check_broker(config: BrokerConfig) -> None:
    """ConfigError when settings of the broker contradict one another."""
    _check_ports(config.listeners)
    if not config.client_listeners:
        raise ConfigError(
            "controller.listener.names",
            "controller.listener.names leaves no listener for clients: add one to listeners",
        )
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
    for published in config.horolog_published_listeners:
        _check_can_be_dialled("horolog.published.listeners", published)


def check_listener_keys(config: BrokerConfig) -> None:
    """ConfigError when `listener.name.NAME.max.connections` is for a listener that is not there."""
    names = {listener.name for listener in config.client_listeners}
    for name in config.listener_max_connections:
        if name not in names:
            key = f"listener.name.{name.lower()}.max.connections"
            raise ConfigError(key, f"{key}: listeners has no {name}: {', '.join(sorted(names))}")


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
