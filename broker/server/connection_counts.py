"""Limits of connections: in all, by address, by listener, and by rate.

A number of connections is reserved for the listener of administrators, so that they can connect and
correct the other limits when these are used up (Kafka's inter-broker listener is the model). Only
the system's limit of open files stands above it.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Protocol

from broker.server.arrival_rate import ArrivalRate

ADMIN_CONNECTIONS = 10


class ConnectionSettings(Protocol):
    """The settings that are read for every new connection, because they may change."""

    @property
    def max_connections(self) -> int:
        """Connections at one time."""

    @property
    def max_connections_per_ip(self) -> int:
        """Connections at one time from one address."""

    @property
    def horolog_max_connection_rate_per_ip(self) -> int:
        """New connections in a second from one address; 0 is no limit."""

    @property
    def horolog_admin_listener_name(self) -> str:
        """The listener that connections are kept for; empty: none."""

    @property
    def listener_max_connections(self) -> Mapping[str, int]:
        """Connections at one time by listener, of those that have such a limit."""


class ConnectionCounts:
    """The connections there are. Used from the event loop only."""

    def __init__(
        self,
        settings: Callable[[], ConnectionSettings],
        monotonic: Callable[[], float],
        max_by_open_files: int,
    ) -> None:
        """`settings()` gives the snapshot in force."""
        self._settings = settings
        self._monotonic = monotonic
        self._max_by_open_files = max_by_open_files
        self._total = 0
        self._by_host: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._arrivals = ArrivalRate()

    def refusal(self, listener: str, host: str) -> str | None:
        """The word for the limit that a new connection would pass; None: it may come in."""
        settings = self._settings()
        admin = settings.horolog_admin_listener_name
        kept = ADMIN_CONNECTIONS if admin and listener != admin else 0
        if self._total >= self._max_by_open_files - kept:
            return "open_files"
        if self.is_kept(listener):
            return None
        if self._of_others(admin) >= settings.max_connections:
            return "max_connections"
        if self._is_full(listener, settings.listener_max_connections):
            return "listener_max_connections"
        if self._by_host[host] >= settings.max_connections_per_ip:
            return "max_connections_per_ip"
        rate = settings.horolog_max_connection_rate_per_ip
        if not self._arrivals.admits(host, self._monotonic(), rate):
            return "max_connection_rate_per_ip"
        return None

    def is_kept(self, listener: str) -> bool:
        """True for a connection of the listener of administrators that is reserved for them."""
        admin = self._settings().horolog_admin_listener_name
        return listener == admin and self._by_listener[listener] < ADMIN_CONNECTIONS

    def why_full(self) -> str | None:
        """The limit that keeps every client out but administrators, in words; None: there is room.

        Limits of one address or listener keep out some, not all.
        """
        settings = self._settings()
        admin = settings.horolog_admin_listener_name
        others = self._of_others(admin)
        if others >= settings.max_connections:
            return f"{others} connections, and max.connections is {settings.max_connections}"
        kept = ADMIN_CONNECTIONS if admin else 0
        if self._total >= self._max_by_open_files - kept:
            return f"{self._total} connections, and open files (ulimit -n) leave room for no more"
        return None

    def came(self, listener: str, host: str) -> None:
        """A connection was let in."""
        self._total += 1
        self._by_host[host] += 1
        self._by_listener[listener] += 1

    def went(self, listener: str, host: str) -> None:
        """It is over."""
        self._total -= 1
        for counts, name in ((self._by_host, host), (self._by_listener, listener)):
            counts[name] -= 1
            if not counts[name]:
                del counts[name]

    def forget(self, now: float) -> None:
        """Lets go of addresses that have rested; called now and then."""
        self._arrivals.forget(now)

    def _of_others(self, admin: str) -> int:
        """All connections but those that are kept."""
        kept = min(self._by_listener[admin], ADMIN_CONNECTIONS) if admin else 0
        return self._total - kept

    def _is_full(self, listener: str, limits: Mapping[str, int]) -> bool:
        return listener in limits and self._by_listener[listener] >= limits[listener]
