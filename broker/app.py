"""Composition root: what exists in a running broker, and in which order it starts and stops.

`Broker` is the bag of services that handlers reach through their `RequestContext`. It decides
nothing; each service has its own module.
"""

import asyncio
from typing import TYPE_CHECKING

from broker.commit import Durable, GroupCommit
from broker.context import RequestContext
from broker.endpoints import Endpoint, Listener
from broker.lanes import DiskLanes
from broker.metrics.probes import BrokerProbes
from broker.waiters import FetchWaiters

if TYPE_CHECKING:
    from broker.catalog import TopicCatalog
    from broker.fetch_sessions import FetchSessions
    from broker.partition import Partition
    from broker.producer_ids import ProducerIds
    from config.store import ConfigStore
    from protocol.api import Api
    from storage.env import Clock, Env
    from storage.log import Log
    from storage.manager import LogManager


class Broker:
    """The services of one broker. Attributes are set once, at start."""

    config: "ConfigStore"
    log_manager: "LogManager"
    catalog: "TopicCatalog"
    partitions: "dict[tuple[str, int], Partition]"
    fetch_sessions: "FetchSessions"
    producer_ids: "ProducerIds"
    served: "tuple[Api, ...]"  # every API that has a handler, by key: what ApiVersions lists
    node_id: int
    cluster_id: str
    log_dir: str

    def __init__(self, env: "Env", loop: asyncio.AbstractEventLoop) -> None:
        """The parts that need no directory and no settings."""
        self.env = env
        self.clock: Clock = env.clock
        self.loop = loop
        self.probes = BrokerProbes(env.clock.monotonic)
        self.lanes = DiskLanes(loop)
        self.waiters = FetchWaiters(loop)
        self.commit = GroupCommit(
            loop,
            env.clock.monotonic,
            self.probes,
            on_durable=self._log_durable,
            on_failed=self._log_failed,
        )
        self.listeners: dict[str, Listener] = {}

    def advertised(self, context: RequestContext) -> Endpoint:
        """The address of this broker that the client of `context` can reach."""
        peer = context.peer
        listener = self.listeners[peer.listener_name]
        return listener.endpoint_for(peer.local_host, peer.local_port)

    def _log_durable(self, log: Durable) -> None:
        """An fsync advanced this log: its partition wakes the fetches that can now see more."""
        partition = self._partition_of(log)
        if partition is not None:
            partition.became_durable()

    def _log_failed(self, log: Durable, error: BaseException) -> None:
        """An fsync of this log failed: its partition takes no more writes."""
        partition = self._partition_of(log)
        if partition is not None:
            partition.went_offline(error)

    def _partition_of(self, durable: Durable) -> "Partition | None":
        log: Log = durable  # type: ignore[assignment]
        return self.partitions.get((log.topic, log.partition))
