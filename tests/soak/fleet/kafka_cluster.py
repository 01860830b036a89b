"""Three brokers of Kafka with three copies of everything, as a run breaks them."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from tests.soak.fleet.clusters import NODES
from tests.soak.fleet.switch import Switch
from tests.support.fleet.brokers import LOOPBACK
from tests.support.kafka.kafka_oracle import full_kafka
from tests.support.ports import free_port
from tests.support.worlds.node_process import NodeProcess

CLIENTS, INSIDE = "clients", "inside"
PROTOCOLS = "CLIENTS:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT"
SETTINGS = {
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
    "listener.security.protocol.map": PROTOCOLS,
    "inter.broker.listener.name": "INSIDE",
}


class KafkaCluster:
    """Three brokers that are controllers, too; clients have a network of their own."""

    def __init__(self, folder: Path, lease_ms: int, switch: Switch | None) -> None:
        """Nothing runs."""
        self._folder = folder
        self._switch = switch
        self._ports = {each: [free_port() for _ in range(3)] for each in NODES}
        self._lease = {
            "broker.session.timeout.ms": str(lease_ms),
            "broker.heartbeat.interval.ms": str(lease_ms // 4),
        }
        self._running: dict[int, NodeProcess] = {}

    @property
    def bootstrap(self) -> str:
        """As the port has it."""
        return ",".join(self._at(each, CLIENTS, 0) for each in NODES)

    @property
    def may_be_cut(self) -> bool:
        """True in namespaces."""
        return self._switch is not None

    def start(self, node: int) -> None:
        """As the port has it."""
        clients, inside, controller = self._listeners(node)
        voters = ",".join(f"{each}@{self._listeners(each)[2]}" for each in NODES)
        settings = {
            **SETTINGS,
            **self._lease,
            "node.id": str(node),
            "controller.quorum.voters": voters,
            "listeners": f"CLIENTS://{clients},INSIDE://{inside},CONTROLLER://{controller}",
            "advertised.listeners": f"CLIENTS://{clients},INSIDE://{inside}",
        }
        within = [] if self._switch is None else self._switch.within(node)
        self._running[node] = full_kafka(
            self._directory(node), settings, listen=clients, heap="400m", within=within
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

    def cut(self, node: int) -> AbstractContextManager[None]:
        """Nothing goes from it to the other two, or from them to it; clients reach it."""
        assert self._switch is not None
        return self._switch.cut(node, INSIDE)

    def end(self) -> None:
        """All of them."""
        for each in list(self._running):
            self.kill(each)

    def _listeners(self, node: int) -> list[str]:
        return [self._at(node, each, index) for index, each in enumerate((CLIENTS, INSIDE, INSIDE))]

    def _at(self, node: int, network: str, index: int) -> str:
        host = LOOPBACK if self._switch is None else self._switch.node(node, network)
        return f"{host}:{self._ports[node][index]}"

    def _directory(self, node: int) -> Path:
        return self._folder / f"node-{node}" / "data"


@contextmanager
def kafka(folder: Path, lease_ms: int, *, in_namespaces: bool) -> Iterator[KafkaCluster]:
    """Three Kafka brokers that run; the first waits for the second."""
    with ExitStack() as stack:
        switch = None
        if in_namespaces:
            switch = Switch((CLIENTS, INSIDE), NODES)
            stack.callback(switch.end)
        made = KafkaCluster(folder, lease_ms, switch)
        stack.callback(made.end)
        with ThreadPoolExecutor(len(NODES)) as threads:
            list(threads.map(made.start, NODES))
        yield made
