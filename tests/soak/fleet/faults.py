"""Faults of a run: of any node, of the ways between them, and of the engines of a fleet."""

import os
import random
import signal
import time
from collections.abc import Callable, Mapping

from tests.soak.fleet.clusters import NODES, Cluster
from tests.soak.fleet.engines import DATABASE, STORE
from tests.soak.fleet.horolog_fleet import FleetCluster
from tests.soak.fleet.kafka_cluster import KafkaCluster

AWAY_SECONDS = 3.0
CUT_SECONDS = (2.0, 8.0)


class NodeFaults:
    """Faults of single nodes. Each returns when it is over."""

    def __init__(self, cluster: Cluster, dice: random.Random, stopped_seconds: float) -> None:
        """Nothing happens yet."""
        self._cluster = cluster
        self._stopped_seconds = stopped_seconds
        self.dice = dice
        self.node = 0
        """The one that the last fault was of; 0 for an engine's."""

    def _pick(self) -> int:
        self.node = self.dice.choice(NODES)
        return self.node

    @property
    def ways(self) -> Mapping[str, Callable[[], None]]:
        """By their names."""
        return {
            "kill -9 of a node": self._kill,
            "a node's disk lost": self._lose_disk,
            f"a node stopped for {self._stopped_seconds:g} s": self._stop_process,
            "SIGTERM of a node": self._stop,
        }

    def _kill(self) -> None:
        node = self._pick()
        self._cluster.kill(node)
        time.sleep(AWAY_SECONDS)
        self._cluster.start(node)

    def _lose_disk(self) -> None:
        node = self._pick()
        self._cluster.kill(node)
        self._cluster.lose_disk(node)
        time.sleep(AWAY_SECONDS)
        self._cluster.start(node)

    def _stop_process(self) -> None:
        pid = self._cluster.pid(self._pick())
        os.kill(pid, signal.SIGSTOP)
        time.sleep(self._stopped_seconds)
        os.kill(pid, signal.SIGCONT)

    def _stop(self) -> None:
        node = self._pick()
        self._cluster.stop(node)
        self._cluster.start(node)


class KafkaFaults(NodeFaults):
    """Those, and a node cut from the other two."""

    def __init__(self, cluster: KafkaCluster, dice: random.Random, stopped_seconds: float) -> None:
        """Nothing happens yet."""
        super().__init__(cluster, dice, stopped_seconds)
        self._kafka = cluster

    @property
    def ways(self) -> Mapping[str, Callable[[], None]]:
        """By their names."""
        cut = {"a node cut from the others": self._cut} if self._kafka.may_be_cut else {}
        return {**super().ways, **cut}

    def _cut(self) -> None:
        with self._kafka.cut(self._pick()):
            time.sleep(self.dice.choice(CUT_SECONDS))


class FleetFaults(NodeFaults):
    """Those, and faults of PostgreSQL, of the object store, and of one node's ways to them."""

    def __init__(self, fleet: FleetCluster, dice: random.Random, stopped_seconds: float) -> None:
        """Nothing happens yet."""
        super().__init__(fleet, dice, stopped_seconds)
        self._fleet = fleet

    @property
    def ways(self) -> Mapping[str, Callable[[], None]]:
        """By their names."""
        return {
            **super().ways,
            "kill -9 of PostgreSQL": self._kill_database,
            "kill -9 of the store": self._kill_store,
            f"the store stopped for {self._stopped_seconds:g} s": self._stop_store,
            "a node cut from PostgreSQL": self._cut_database,
            "a node cut from the store": self._cut_store,
        }

    def _kill_database(self) -> None:
        self._fleet.database.kill()
        time.sleep(self.dice.choice((0.0, AWAY_SECONDS)))
        self._fleet.database.start()

    def _kill_store(self) -> None:
        self._fleet.store.kill()
        time.sleep(self.dice.choice((0.0, AWAY_SECONDS)))
        self._fleet.store.start()

    def _stop_store(self) -> None:
        with self._fleet.store.server.frozen():
            time.sleep(self._stopped_seconds)

    def _cut_database(self) -> None:
        with self._fleet.ways.cut(self._pick(), DATABASE):
            time.sleep(self.dice.choice(CUT_SECONDS))

    def _cut_store(self) -> None:
        with self._fleet.ways.cut(self._pick(), STORE):
            time.sleep(self.dice.choice(CUT_SECONDS))
