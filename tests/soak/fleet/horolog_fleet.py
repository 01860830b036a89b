"""A fleet of ours with real engines, as a run breaks it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.soak.fleet.clusters import NODES
from tests.soak.fleet.engines import CLIENTS, DATABASE, STORE, Store, Ways, running_engines
from tests.soak.fleet.switch import Switch
from tests.support.fleet.brokers import FleetOfBrokers
from tests.support.fleet.postgres_server import PostgresServer

NETWORKS = (CLIENTS, DATABASE, STORE)
SETTINGS = {
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "horolog.tier.max.lag.ms": "4000",
    "remote.log.manager.task.interval.ms": "500",
    "horolog.fleet.checkpoint.ms": "5000",
    "horolog.fleet.allow.plaintext": "true",
    "horolog.tier.allow.http": "true",
}


class FleetCluster:
    """A fleet; each node has a way of its own to each engine."""

    def __init__(
        self, folder: Path, database: PostgresServer, store: Store, ways: Ways, lease_ms: int
    ) -> None:
        """Nothing runs but the engines."""
        self._brokers = FleetOfBrokers(folder, database, store.server)
        self.database, self.store, self.ways = database, store, ways
        self._engine = urlsplit(self._brokers.url).netloc.rpartition("@")[2]
        self._settings = {**SETTINGS, "horolog.fleet.lease.ms": str(lease_ms)}
        self._addresses: dict[int, str] = {}

    @property
    def bootstrap(self) -> str:
        """As the port has it."""
        return ",".join(self._addresses.values())

    def start(self, node: int) -> None:
        """As the port has it."""
        url = self._brokers.url.replace(self._engine, self.ways.to(node, DATABASE))
        started = self._brokers.start(
            node,
            {**self._settings, "horolog.fleet.url": url},
            listen=self.ways.listen(node),
            environment={"AWS_ENDPOINT_URL": f"http://{self.ways.to(node, STORE)}"},
            within=self.ways.within(node),
        )
        self._addresses[node] = started.bootstrap

    def kill(self, node: int) -> None:
        """As the port has it."""
        self._brokers.kill(node)

    def stop(self, node: int) -> None:
        """As the port has it."""
        self._brokers.stop(node)

    def lose_disk(self, node: int) -> None:
        """As the port has it."""
        self._brokers.lose_disk(node)

    def pid(self, node: int) -> int:
        """As the port has it."""
        return self._brokers.running[node].pid

    def end(self) -> None:
        """All nodes."""
        self._brokers.end()


@contextmanager
def fleet(folder: Path, lease_ms: int, *, in_namespaces: bool) -> Iterator[FleetCluster]:
    """A fleet that runs, with its engines."""
    with ExitStack() as stack:
        switch = None
        if in_namespaces:
            switch = Switch(NETWORKS, NODES)
            stack.callback(switch.end)
        engines = stack.enter_context(running_engines(folder, switch, NODES))
        made = FleetCluster(folder, *engines, lease_ms)
        stack.callback(made.end)
        for each in NODES:
            made.start(each)
        yield made
