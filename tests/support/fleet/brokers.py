"""Brokers of one fleet as processes, with a real PostgreSQL and a real object store."""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipeline.broker_client import BrokerClient
from protocol.apis.metadata import MetadataRequest
from tests.support.clients.admin import Admin
from tests.support.fleet.postgres_server import PostgresServer, postgres
from tests.support.patience import until
from tests.support.ports import free_ports
from tests.support.tier.s3_server import S3Server, seaweedfs
from tests.support.worlds.broker_process import own_environment, start_broker
from tests.support.worlds.node_process import NodeProcess

LEASE_MS = 3000
LOOPBACK = "127.0.0.1"


class FleetOfBrokers:
    """Some brokers; each may be killed, and begin again on its directory or on none."""

    def __init__(self, folder: Path, database: PostgresServer, store: S3Server) -> None:
        """Nothing runs."""
        self._folder = folder
        self._store = store
        self.database = database
        self.url = database.new_database()
        self._prefix = self.url.rsplit("/", 1)[-1].partition("?")[0]
        self.running: dict[int, NodeProcess] = {}
        self._ports: dict[int, int] = {}
        self._hosts: dict[int, str] = {}

    def start(
        self,
        node_id: int,
        settings: Mapping[str, str] | None = None,
        *,
        listen: str | None = None,
        environment: Mapping[str, str] | None = None,
        within: Sequence[str] = (),
    ) -> NodeProcess:
        """A node's process, which clients may ask at once; at a port of its own, or at `listen`.

        `environment`: variables beside those for the store, or in their place. `within`: words
        before the command that become it.
        """
        given = {
            "node.id": str(node_id),
            "horolog.fleet.url": self.url,
            "horolog.tier.url": self._store.url(self._prefix),
            "horolog.fleet.lease.ms": str(LEASE_MS),
            **(settings or {}),
        }
        if listen is not None:
            host, _, port = listen.rpartition(":")
            self._hosts[node_id], self._ports[node_id] = host, int(port)
        if node_id not in self._ports:
            [self._ports[node_id]] = free_ports(1)
        node = start_broker(
            self._folder / f"node-{node_id}",
            given,
            listen=f"{self._hosts.get(node_id, LOOPBACK)}:{self._ports[node_id]}",
            environment={**self._store.environment, **(environment or {})},
            within=within,
        )
        self.running[node_id] = node
        return node

    @property
    def store_url(self) -> str:
        """The fleet's place in the store."""
        return self._store.url(self._prefix)

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which commands reach the store."""
        return {**own_environment(), **self._store.environment}

    @property
    def bootstrap(self) -> str:
        """All that run."""
        return ",".join(each.bootstrap for each in self.running.values())

    def wait_until_met(self) -> None:
        """Each tells its clients where the others are; of one that lately was gone not at once."""
        places = {(node_id, self._ports[node_id]) for node_id in self.running}
        for each in self.running.values():
            until(lambda: _known_to(each) >= places, "they do not meet")  # noqa: B023

    def wait_until_even(self) -> None:
        """Each leads as many shards as the others, as they say themselves."""
        for each in self.running.values():
            until(lambda: _is_even(each, len(self.running)), "they are not even")  # noqa: B023

    def kill(self, node_id: int) -> None:
        """kill -9."""
        self.running.pop(node_id).kill()

    def lose_disk(self, node_id: int) -> None:
        """All that a node that does not run had on its disk."""
        assert node_id not in self.running
        shutil.rmtree(self._folder / f"node-{node_id}")

    def stop(self, node_id: int) -> None:
        """SIGTERM, and its end."""
        self.running.pop(node_id).stop()

    def end(self) -> None:
        """All of them."""
        for each in list(self.running):
            self.kill(each)


def _known_to(node: NodeProcess) -> set[tuple[int, int]]:
    """Nodes and ports that a client hears of there. A client that has heard of one more lets go of
    it, and of what it asked there.
    """
    with BrokerClient(node.bootstrap) as client:
        known = client.call(MetadataRequest(topics=[])).brokers
    return {(each.node_id, each.port) for each in known}


def _is_even(node: NodeProcess, nodes: int) -> bool:
    shards = [each["shards"] for each in Admin(node.facts["http"]).get("/api/fleet")["nodes"]]
    return len(shards) == nodes and max(shards) - min(shards) <= 1


@contextmanager
def some_brokers(
    folder: Path,
    both: tuple[PostgresServer, S3Server],
    nodes: Iterable[int],
    settings: Mapping[str, str] | None = None,
) -> Iterator[FleetOfBrokers]:
    """Brokers of a new fleet that run and know of each other; they end with it."""
    brokers = FleetOfBrokers(folder, *both)
    try:
        for node_id in nodes:
            brokers.start(node_id, settings)
        brokers.wait_until_met()
        yield brokers
    finally:
        brokers.end()


@contextmanager
def engines(
    database_at: str = LOOPBACK, store_at: str = LOOPBACK, folder: Path | None = None
) -> Iterator[tuple[PostgresServer, S3Server]]:
    """A PostgreSQL and an object store, which listen on these addresses of this machine.

    Their data are in `folder`; else they go with them.
    """
    of: dict[str, Path | None] = {"postgres": None, "store": None}
    if folder is not None:
        of = {each: folder / each for each in of}
        for each in of.values():
            assert each is not None
            each.mkdir(parents=True)
    with (
        postgres(database_at, of["postgres"]) as database,
        seaweedfs(of["store"], host=store_at) as store,
    ):
        yield database, store
