"""Engines that a fleet of a run stands on, and each node's ways to them."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from tests.soak.fleet.switch import Switch
from tests.soak.fleet.way import Way
from tests.support.fleet.brokers import LOOPBACK, engines
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.tier.s3_server import S3Server

PORT = 9092
CLIENTS, DATABASE, STORE = "clients", "database", "store"


class Store:
    """An object store that is killed, and begins again on its data."""

    def __init__(self, server: S3Server) -> None:
        """One that runs, which another one ends; those begun here end with `end`."""
        self.server = server
        self._is_ours = False

    def kill(self) -> None:
        """kill -9."""
        self.server.stop()

    def start(self) -> None:
        """Returns when it answers."""
        self.server = self.server.begun_again()
        self._is_ours = True

    def end(self) -> None:
        """No process is left."""
        if self._is_ours:
            self.server.stop()


class Ways(Protocol):
    """Ways from nodes to clients and engines."""

    def listen(self, node: int) -> str | None:
        """HOST:PORT that clients reach it at; None for any of this machine."""

    def within(self, node: int) -> list[str]:
        """Words before its command."""

    def to(self, node: int, engine: str) -> str:
        """HOST:PORT of an engine as the node knows it."""

    def cut(self, node: int, engine: str) -> AbstractContextManager[None]:
        """Nothing goes through."""

    def end(self) -> None:
        """Removes them; no node runs."""


class Switched:
    """Cables of a switch."""

    def __init__(self, switch: Switch, places: dict[str, str]) -> None:
        """`places`: HOST:PORT of each engine."""
        self._switch, self._places = switch, places

    def listen(self, node: int) -> str | None:
        """As the port has it."""
        return f"{self._switch.node(node, CLIENTS)}:{PORT}"

    def within(self, node: int) -> list[str]:
        """As the port has it."""
        return self._switch.within(node)

    def to(self, node: int, engine: str) -> str:
        """As the port has it."""
        return self._places[engine]

    def cut(self, node: int, engine: str) -> AbstractContextManager[None]:
        """As the port has it."""
        return self._switch.cut(node, engine)

    def end(self) -> None:
        """Nothing: the switch is another's."""


class Forwarders:
    """Processes that carry bytes, where there are no namespaces: stopped ones stand for a cut."""

    def __init__(self, nodes: tuple[int, ...], places: dict[str, str]) -> None:
        """`places`: HOST:PORT of each engine."""
        self._ways = {
            (node, engine): Way(place) for node in nodes for engine, place in places.items()
        }

    def listen(self, node: int) -> str | None:
        """As the port has it."""
        return None

    def within(self, node: int) -> list[str]:
        """As the port has it."""
        return []

    def to(self, node: int, engine: str) -> str:
        """As the port has it."""
        return self._ways[node, engine].address

    def cut(self, node: int, engine: str) -> AbstractContextManager[None]:
        """As the port has it."""
        return self._ways[node, engine].cut()

    def end(self) -> None:
        """As the port has it."""
        for each in self._ways.values():
            each.end()


@contextmanager
def running_engines(
    folder: Path, switch: Switch | None, nodes: tuple[int, ...]
) -> Iterator[tuple[PostgresServer, Store, Ways]]:
    """Engines with their data in a folder, and ways to them by a switch or without."""
    database_at, store_at = LOOPBACK, LOOPBACK
    if switch is not None:
        database_at, store_at = switch.machine(DATABASE), switch.machine(STORE)
    with engines(database_at, store_at, folder) as (database, server):
        place = urlsplit(database.url("postgres"))
        places = {DATABASE: f"{place.hostname}:{place.port}", STORE: server.address}
        ways: Ways = Forwarders(nodes, places) if switch is None else Switched(switch, places)
        store = Store(server)
        try:
            yield database, store, ways
        finally:
            store.end()
            ways.end()
