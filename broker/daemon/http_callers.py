"""Callers of the HTTP port: by which names they come, and how they prove who they are."""

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from broker.http.port.access import AccessControl
from broker.http.port.identity import Identities, KnownUsers
from broker.http.port.route import check_routes
from config.security.protocols import HTTP

if TYPE_CHECKING:
    from broker.daemon.services import Services


def gate_of(services: "Services", host: str) -> AccessControl:
    """The names that the port is asked by; `host` is the listener's."""
    names = services.config.broker_config.horolog_http_hosts.replace(",", " ").split()
    return AccessControl(host, names)


def identities_of(services: "Services", host: str) -> Identities:
    """The callers: without an authorizer none but tokens are known."""
    users = _users(services) if services.authority.is_on else None
    is_test = services.held_time is not None
    tokens, delays = services.http_tokens, services.lobby.delays
    return Identities(host, tokens, users, delays, is_test=is_test)


def check_http_routes() -> None:
    """LookupError for a path of the API that does not say what right it needs.

    Loads the API, which else waits for the first request.
    """
    check_routes(import_module("broker.http.routes").ROUTES)


def _users(services: "Services") -> KnownUsers:
    return KnownUsers(
        services.authority.rights_for_one,
        services.passwords,
        partial(_user_of, services),
        services.judges.get(HTTP),
    )


def _user_of(services: "Services", certificate: bytes) -> str:
    """By the rules in force: the credentials of the port may be renewed at any time."""
    return services.server.tls[HTTP].credentials.user_of(certificate)
