"""Brokers with a tier: ours with a real store that speaks S3's protocol, a Kafka with a directory.

Kafka's own tests have the only store that it comes with, LocalTieredStorage: files of the same
machine, without a network in between.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from broker.http.port.shared_scrape import KEPT_SECONDS
from protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.apis.metadata import MetadataRequest
from tests.bench import process
from tests.bench.lookup_cells import SET, TOPIC_RESOURCE
from tests.bench.peers import Peer, remove
from tests.bench.pump import refuse
from tests.bench.wire import Wire
from tests.support.clients.scraped import metric_of
from tests.support.kafka.kafka_oracle import full_kafka
from tests.support.kafka.tiered_kafka import tier_settings
from tests.support.tier.s3_server import S3Server, only_aws, seaweedfs
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

OFTEN: Final = {
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "200",
    "remote.log.manager.task.interval.ms": "200",
}
BASE_DIGITS: Final = 20

Store = Callable[[], AbstractContextManager[S3Server]]


@dataclass(slots=True)
class TieredNode:
    """A running broker with a tier, which may be started again on what it has."""

    peer: Peer
    directory: Path
    settings: Mapping[str, str]
    options: tuple[str, ...] = ()
    server: S3Server | None = None
    """The store; None when it is a directory."""
    process: NodeProcess = field(init=False, repr=False)

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for clients."""
        return self.process.bootstrap

    @property
    def is_ours(self) -> bool:
        """True for our own broker."""
        return self.server is not None

    def start(self, more: Mapping[str, str] | None = None, options: tuple[str, ...] = ()) -> None:
        """Starts it. `more`: settings beside its own."""
        settings = {**self.settings, **(more or {})}
        if self.server is None:
            self.process = full_kafka(self.directory, settings)
        else:
            with only_aws(self.server.environment):
                self.process = start_broker(self.directory, settings, options=options)
        with Wire(self.bootstrap) as wire:
            wire.call("Metadata", 9, MetadataRequest(topics=[]))

    def again(self, more: Mapping[str, str] | None = None, options: tuple[str, ...] = ()) -> None:
        """Ends it and starts it: nothing of the store is in its memory, or in our cache."""
        self.process.stop()
        self.start(more, options)

    def special(self, topic: str, which: int) -> int:
        """Answer to one of the special times."""
        asked = ListOffsetsPartition(partition_index=0, timestamp=which)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
        with Wire(self.bootstrap) as wire:
            found = wire.call("ListOffsets", 11, request).topics[0].partitions[0]
        return int(found.offset)

    def local_bases(self, topic: str) -> list[int]:
        """First offsets of the segments on the disk."""
        folder = self.directory / f"{topic}-0"
        return sorted(int(each.name[:BASE_DIGITS]) for each in folder.glob("*.log"))

    def stored_bases(self, topic: str) -> list[int]:
        """First offsets of the segments in the store."""
        if self.server is None:
            files = (self.directory.parent / "tier").glob(f"*/{topic}-0-*/*.log")
            names = [each.name for each in files]
        else:
            found = self.server.open("bench").list(f"topics/{topic}/")
            names = [each.key.rpartition("/")[2] for each in found if each.key.endswith(".log")]
        return sorted({int(name[:BASE_DIGITS]) for name in names})

    def stored_bytes(self, topic: str) -> int:
        """Bytes of the segments in the store that are whole."""
        if self.server is None:
            files = (self.directory.parent / "tier").glob(f"*/{topic}-0-*/*.log")
            return sum(_size(each) for each in files)
        found = self.server.open("bench").list(f"topics/{topic}/")
        return sum(each.size_bytes for each in found if each.key.endswith(".log"))

    def closed_bytes(self, topic: str) -> int:
        """Bytes of the segments on the disk, but for the one that is written."""
        files = sorted((self.directory / f"{topic}-0").glob("*.log"))
        return sum(_size(each) for each in files[:-1])

    def cpu(self) -> dict[str, float]:
        """CPU seconds so far of the broker, and of the store where that is a process.

        The broker's has that of its copier, a process of its own, as long as there is one.
        """
        pid = self.process.pid
        spent = {"broker": sum(map(process.cpu_seconds, (pid, *process.children(pid))))}
        if self.server is not None and self.server.process is not None:
            spent["store"] = process.cpu_seconds(self.server.process.pid)
        return spent

    def change(self, topic: str, settings: Mapping[str, str]) -> None:
        """Changes settings of a topic."""
        configs = [
            AlterableConfig(name=k, config_operation=SET, value=v) for k, v in settings.items()
        ]
        resource = AlterConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=topic, configs=configs
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        with Wire(self.bootstrap) as wire:
            refuse(wire.call("IncrementalAlterConfigs", 1, request).responses[0].error_code)

    def asked_of_store(self) -> "StoreBill":
        """Requests and bytes of reads so far; of ours alone."""
        time.sleep(KEPT_SECONDS)  # a scrape may be so old
        names = ("horolog_tier_requests_total", "horolog_tier_transferred_bytes_total")
        return StoreBill(*(metric_of(self.process, f"{each}{READS}") for each in names))


READS = r'\{[^}]*purpose="read"[^}]*\}'


@dataclass(frozen=True, slots=True)
class StoreBill:
    """Requests to a store, and bytes that came."""

    requests: float
    size_bytes: float

    def since(self, before: "StoreBill") -> "StoreBill":
        """Those that came behind another bill."""
        return StoreBill(self.requests - before.requests, self.size_bytes - before.size_bytes)


def _size(file: Path) -> int:
    """0 when it is gone meanwhile."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


@contextmanager
def tiered(
    peer: Peer, more: Mapping[str, str], *options: str, store: Store = seaweedfs
) -> Iterator[TieredNode]:
    """A node of the peer's kind with an empty tier.

    `more`: settings; `options`, `store`: of ours alone.
    """
    directory = peer.fresh_directory()
    directory.parent.mkdir(parents=True)
    try:
        if peer.name != "horolog":
            (directory.parent / "tier").mkdir()
            settings = {**OFTEN, **tier_settings(directory.parent / "tier"), **more}
            yield from _running(TieredNode(peer, directory, settings))
            return
        with store() as server:
            own = {
                "remote.log.storage.system.enable": "true",
                "horolog.tier.url": server.url("bench"),
            }
            node = TieredNode(peer, directory, {**OFTEN, **own, **more}, server=server)
            yield from _running(node, options)
    finally:
        remove(directory)


def _running(node: TieredNode, options: tuple[str, ...] = ()) -> Iterator[TieredNode]:
    node.start(options=options)
    try:
        yield node
    finally:
        node.process.kill()  # asked to end, some take seconds


def stand_back(server: S3Server) -> None:
    """Has the store, which stands for another machine's, take what CPU others leave."""
    assert server.process is not None
    for task in Path(f"/proc/{server.process.pid}/task").iterdir():
        with suppress(ProcessLookupError):
            os.sched_setscheduler(int(task.name), os.SCHED_IDLE, os.sched_param(0))
