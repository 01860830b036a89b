"""Faults of a run: of any node, and of the engines that a fleet stands on."""

import os
import random
import signal
import time
from collections.abc import Callable, Mapping

from tests.soak.fleet.clusters import NODES, Cluster, FleetCluster

STOPPED_SECONDS = 5.0
AWAY_SECONDS = 3.0
CUT_SECONDS = (2.0, 8.0)


class NodeFaults:
    """Faults of single nodes. Each returns when it is over."""

    def __init__(self, cluster: Cluster, dice: random.Random) -> None:
        """Nothing happens yet."""
        self._cluster = cluster
        self.dice = dice

    @property
    def ways(self) -> Mapping[str, Callable[[], None]]:
        """By their names."""
        return {
            "kill -9 of a node": self._kill,
            "a node's disk lost": self._lose_disk,
            "a node stopped, and awake again": self._stop_process,
            "SIGTERM of a node": self._stop,
        }

    def _kill(self) -> None:
        node = self.dice.choice(NODES)
        self._cluster.kill(node)
        time.sleep(AWAY_SECONDS)
        self._cluster.start(node)

    def _lose_disk(self) -> None:
        node = self.dice.choice(NODES)
        self._cluster.kill(node)
        self._cluster.lose_disk(node)
        time.sleep(AWAY_SECONDS)
        self._cluster.start(node)

    def _stop_process(self) -> None:
        pid = self._cluster.pid(self.dice.choice(NODES))
        os.kill(pid, signal.SIGSTOP)
        time.sleep(STOPPED_SECONDS)
        os.kill(pid, signal.SIGCONT)

    def _stop(self) -> None:
        node = self.dice.choice(NODES)
        self._cluster.stop(node)
        self._cluster.start(node)


class FleetFaults(NodeFaults):
    """Those, and faults of PostgreSQL, of the object store, and of one node's ways to them."""

    def __init__(self, fleet: FleetCluster, dice: random.Random) -> None:
        """Nothing happens yet."""
        super().__init__(fleet, dice)
        self._fleet = fleet

    @property
    def ways(self) -> Mapping[str, Callable[[], None]]:
        """By their names."""
        return {
            **super().ways,
            "kill -9 of PostgreSQL": self._kill_database,
            "the store stopped": self._stop_store,
            "a node cut from PostgreSQL": self._cut_database,
            "a node cut from the store": self._cut_store,
        }

    def _kill_database(self) -> None:
        self._fleet.database.kill()
        time.sleep(self.dice.choice((0.0, AWAY_SECONDS)))
        self._fleet.database.start()

    def _stop_store(self) -> None:
        with self._fleet.store.frozen():
            time.sleep(STOPPED_SECONDS)

    def _cut_database(self) -> None:
        with self._fleet.to_database[self.dice.choice(NODES)].cut():
            time.sleep(self.dice.choice(CUT_SECONDS))

    def _cut_store(self) -> None:
        with self._fleet.to_store[self.dice.choice(NODES)].cut():
            time.sleep(self.dice.choice(CUT_SECONDS))
