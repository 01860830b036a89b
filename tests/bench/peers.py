"""The brokers under measurement: ours, a real Kafka that we start, one that runs already."""

import itertools
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from protocol.apis.metadata import MetadataRequest
from tests.bench import process
from tests.bench.wire import Wire
from tests.support.kafka.kafka_oracle import full_kafka
from tests.support.ports import free_port
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

Starter = Callable[..., NodeProcess]
_numbers = itertools.count()
UNFORCED = {"flush.messages": str(2**63 - 1)}
"""A Kafka's default for topics, unless its broker forces."""


def _only_listeners(text: str) -> Mapping[str, str]:
    return {"listeners": text}


@dataclass(slots=True)
class Peer:
    """One broker: where it is, how it is told to force data to disk, how another one is started.

    `pid` is None for a broker whose process we do not know; `starter` is None when it is not ours
    to start. The two configs are what a topic needs to be forced to disk before the answer, and
    not to be.
    """

    name: str
    bootstrap: str
    pid: int | None
    scratch: Path
    fsync_config: Mapping[str, str]
    cached_config: Mapping[str, str]
    forcing: Mapping[str, str] = field(default_factory=dict)
    """Settings of a broker that has each of its own writes on the disk before it answers."""
    starter: Starter | None = None
    node: NodeProcess | None = field(default=None, repr=False)
    listeners: Callable[[str], Mapping[str, str]] = field(default=_only_listeners, repr=False)
    """The settings of a node that has these listeners for clients, as Kafka writes them."""

    @property
    def can_start(self) -> bool:
        return self.starter is not None

    def fresh_directory(self) -> Path:
        """A new place for the data of a short-lived node."""
        return self.scratch / f"{self.name}-{next(_numbers)}" / "data"

    def start_another(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        listen: str = "127.0.0.1:0",
    ) -> NodeProcess:
        """A node of this kind besides the measured one; ready when it has answered Metadata."""
        assert self.starter
        node = self.starter(directory, settings, listen=listen, ready_within_seconds=300)
        with Wire(node.bootstrap) as wire:
            wire.call("Metadata", 9, MetadataRequest(topics=[]))
        return node

    def cpu_seconds(self) -> float | None:
        return None if self.pid is None else process.cpu_seconds(self.pid)

    def stop(self) -> None:
        if self.node:
            self.node.stop()


def horolog(scratch: Path) -> Peer:
    """Our broker from this checkout, on an empty directory."""
    node = start_broker(scratch / "horolog" / "data")
    return Peer(
        "horolog",
        node.bootstrap,
        node.pid,
        scratch,
        fsync_config={"horolog.durability": "fsync"},
        cached_config={"horolog.durability": "os"},
        starter=start_broker,
        node=node,
    )


def kafka(scratch: Path) -> Peer:
    """A real Kafka, on an empty directory."""
    node = full_kafka(scratch / "kafka" / "data")
    peer = running_kafka(node.bootstrap, node.pid, scratch)
    peer.starter, peer.node, peer.listeners = full_kafka, node, _kafka_listeners
    return peer


def _kafka_listeners(text: str) -> Mapping[str, str]:
    """Those of clients, and one for its controller."""
    controller = f"127.0.0.1:{free_port()}"
    return {
        "controller.quorum.voters": f"1@{controller}",
        "listeners": f"{text},CONTROLLER://{controller}",
        "advertised.listeners": text,
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
    }


def running_kafka(bootstrap: str, pid: int | None, scratch: Path) -> Peer:
    """A Kafka that somebody else started."""
    forcing = {"log.flush.interval.messages": "1"}
    return Peer("kafka", bootstrap, pid, scratch, {"flush.messages": "1"}, UNFORCED, forcing)


def remove(directory: Path) -> None:
    """Frees the disk of a short-lived node."""
    shutil.rmtree(directory.parent, ignore_errors=True)
