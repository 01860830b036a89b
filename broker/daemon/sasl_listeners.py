"""Doors of the SASL listeners, from the settings; refused where nobody could come in."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from broker.daemon.oauth_listeners import oauth_exchanges
from broker.security.credentials import BY_SASL_NAME, CredentialKey, Mechanism
from broker.security.sasl.exchange import Exchange
from broker.security.sasl.plain import PlainExchange
from broker.security.sasl.scram import ScramExchange
from broker.security.sasl.sessions import Lifetimes
from broker.security.users import DOCUMENT as USERS
from broker.server.doors import Door, DoorLimits
from config.errors import ConfigError
from config.security.oauth import MECHANISM as OAUTHBEARER

if TYPE_CHECKING:
    from broker.daemon.services import Services

PLAIN = "PLAIN"


def open_doors(services: "Services") -> None:
    """Gives each SASL listener its door, before clients may come."""
    settings = services.config.broker_config
    if not settings.sasl_listeners:
        return
    limits = DoorLimits(
        settings.sasl_server_max_receive_size, services.server.limits.max_frame_bytes
    )
    exchanges, by_token = _exchanges(services), oauth_exchanges(services.judges)
    services.server.doors = {
        each.name: Door(
            services.lobby,
            {
                name: by_token[each.name] if name == OAUTHBEARER else exchanges[name]
                for name in settings.mechanisms_of(each.name)
            },
            Lifetimes(services.clock.now_ms, settings.longest_sessions_ms(each.name)),
            limits,
            services.dispatcher.dispatch,
        )
        for each in settings.sasl_listeners
    }


def check_somebody_may_enter(services: "Services") -> None:
    """ConfigError when every listener asks for a user that cannot be there."""
    settings = services.config.broker_config
    if len(settings.sasl_listeners) < len(settings.client_listeners):
        return
    enabled = {
        name for each in settings.sasl_listeners for name in settings.mechanisms_of(each.name)
    }
    if OAUTHBEARER in enabled:
        return
    if not any(PLAIN in enabled or _is_for(key, enabled) for key in services.users.rows):
        place, advice = _users_of(services)
        raise ConfigError(
            "listeners",
            f"nobody could connect: every listener needs SASL, and {place} has no user "
            f"for {', '.join(sorted(enabled))}. {advice}",
        )


def _users_of(services: "Services") -> tuple[str, str]:
    """The place that decides who the users are, and how one comes there."""
    if services.fleet is not None and USERS in services.fleet.image.documents:
        return "the fleet", (
            "Start a node with one more listener that needs no SASL, and add one there: "
            "horolog users add NAME --bootstrap HOST:PORT"
        )
    log_dir = services.log_dir
    return log_dir, f"Add one: horolog users add NAME --offline --data-dir {log_dir}"


def _is_for(key: CredentialKey, enabled: set[str]) -> bool:
    return key.mechanism.sasl_name in enabled


def _exchanges(services: "Services") -> dict[str, Callable[[str], Exchange]]:
    """Every mechanism that is served."""
    users, tokens, rng = services.users, services.tokens, services.rng

    def scram(mechanism: Mechanism, _: str) -> Exchange:
        return ScramExchange(mechanism, users, tokens, rng)

    return {
        **{name: partial(scram, mechanism) for name, mechanism in BY_SASL_NAME.items()},
        PLAIN: partial(PlainExchange, services.passwords),
    }
