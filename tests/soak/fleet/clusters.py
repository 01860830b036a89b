"""Three brokers that are one: a fleet of ours, or Kafka with three copies of everything."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from tests.soak.fleet.way import Way
from tests.support.clients.containers import free_port
from tests.support.fleet.brokers import FleetOfBrokers, engines
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.kafka.kafka_oracle import start_kafka
from tests.support.tier.s3_server import S3Server
from tests.support.worlds.node_process import NodeProcess

NODES = (1, 2, 3)
OURS = {
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "horolog.tier.max.lag.ms": "4000",
    "remote.log.manager.task.interval.ms": "500",
    "horolog.fleet.checkpoint.ms": "5000",
}
KAFKAS = {
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "process.roles": "broker,controller",
}


class Cluster(Protocol):
    """Brokers that a run breaks."""

    @property
    def bootstrap(self) -> str:
        """All of them, whether they run or not."""

    def start(self, node: int) -> None:
        """Returns when clients may ask it."""

    def kill(self, node: int) -> None:
        """kill -9."""

    def stop(self, node: int) -> None:
        """SIGTERM, and its end."""

    def lose_disk(self, node: int) -> None:
        """All that a node that does not run had on its disk."""

    def pid(self, node: int) -> int:
        """Its process."""


class FleetCluster:
    """A fleet; each node has a way of its own to each engine."""

    def __init__(
        self, folder: Path, database: PostgresServer, store: S3Server, lease_ms: int
    ) -> None:
        """Nothing runs but the ways."""
        self._brokers = FleetOfBrokers(folder, database, store)
        self.database, self.store = database, store
        place = urlsplit(self._brokers.url)
        engine = f"{place.hostname}:{place.port}"
        self.to_database = {each: Way(engine) for each in NODES}
        self.to_store = {each: Way(store.address) for each in NODES}
        self._settings = {**OURS, "horolog.fleet.lease.ms": str(lease_ms)}
        self._engine = engine
        self._ports: dict[int, str] = {}

    @property
    def bootstrap(self) -> str:
        """As the port has it."""
        return ",".join(self._ports.values())

    def start(self, node: int) -> None:
        """As the port has it."""
        url = self._brokers.url.replace(self._engine, self.to_database[node].address)
        store = f"http://{self.to_store[node].address}"
        settings = {**self._settings, "horolog.fleet.url": url}
        started = self._brokers.start(node, settings, environment={"AWS_ENDPOINT_URL": store})
        self._ports[node] = started.bootstrap

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
        """All of it but the engines."""
        self._brokers.end()
        for each in (*self.to_database.values(), *self.to_store.values()):
            each.end()


class KafkaCluster:
    """Three brokers that are controllers, too."""

    def __init__(self, folder: Path, lease_ms: int) -> None:
        """Nothing runs."""
        self._folder = folder
        self._ports = {each: free_port() for each in NODES}
        self._controllers = {each: free_port() for each in NODES}
        self._lease = {
            "broker.session.timeout.ms": str(lease_ms),
            "broker.heartbeat.interval.ms": str(lease_ms // 4),
        }
        self._running: dict[int, NodeProcess] = {}

    @property
    def bootstrap(self) -> str:
        """As the port has it."""
        return ",".join(f"127.0.0.1:{each}" for each in self._ports.values())

    def start(self, node: int) -> None:
        """As the port has it."""
        port, controller = self._ports[node], self._controllers[node]
        voters = ",".join(f"{each}@127.0.0.1:{at}" for each, at in self._controllers.items())
        settings = {
            **KAFKAS,
            **self._lease,
            "node.id": str(node),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        }
        self._running[node] = start_kafka(
            self._directory(node), settings, listen=f"127.0.0.1:{port}", heap="400m"
        )

    def kill(self, node: int) -> None:
        """As the port has it."""
        self._running.pop(node).kill()

    def stop(self, node: int) -> None:
        """As the port has it."""
        self._running.pop(node).stop()

    def lose_disk(self, node: int) -> None:
        """As the port has it."""
        shutil.rmtree(self._directory(node))

    def pid(self, node: int) -> int:
        """As the port has it."""
        return self._running[node].pid

    def end(self) -> None:
        """All of them."""
        for each in list(self._running):
            self.kill(each)

    def _directory(self, node: int) -> Path:
        return self._folder / f"node-{node}" / "data"


@contextmanager
def fleet(folder: Path, lease_ms: int) -> Iterator[FleetCluster]:
    """A fleet that runs, with its engines."""
    with ExitStack() as stack:
        database, store = stack.enter_context(engines())
        made = FleetCluster(folder, database, store, lease_ms)
        stack.callback(made.end)
        for each in NODES:
            made.start(each)
        yield made


@contextmanager
def kafka(folder: Path, lease_ms: int) -> Iterator[KafkaCluster]:
    """Three Kafka brokers that run; the first waits for the second."""
    made = KafkaCluster(folder, lease_ms)
    try:
        with ThreadPoolExecutor(len(NODES)) as threads:
            list(threads.map(made.start, NODES))
        yield made
    finally:
        made.end()
