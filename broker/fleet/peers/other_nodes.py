"""Partitions that other nodes of the fleet lead, to be read and written to by this one."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from broker.fleet.peers.appends import PeerAppends
from broker.fleet.peers.peers import Peers
from broker.fleet.peers.records import PeerRecords, PeerSource
from broker.partitions.partition import Partition
from broker.runtime.lanes import DiskLane

T = TypeVar("T")


class PeerPartitions:
    """Asks their leaders. Used from the event loop."""

    def __init__(self, peers: Peers, records: PeerRecords, lane: DiskLane) -> None:
        """Nobody was asked. `lane`: its threads wait for other nodes."""
        self._appends = PeerAppends(peers.ask)
        self._records = records
        self._lane = lane

    async def bounds(self, partition: Partition) -> tuple[int, int]:
        """Log start and high watermark. KafkaError."""
        return await self._records.bounds(partition)

    def source(self, partition: Partition) -> PeerSource:
        """The records, for work of `run`. From any thread."""
        return self._records.source(partition)

    def run(self, work: Callable[[], T]) -> Awaitable[T]:
        """The result of reads here and elsewhere."""
        return self._lane.run(work)

    async def append(self, partition: Partition, batch: bytes) -> None:
        """Returns when the batch is durable. KafkaError: it is not there, or nobody knows."""
        await self._appends.append(partition, batch)
