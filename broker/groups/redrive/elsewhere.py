"""The port to partitions that other nodes of a fleet lead: letters, and where these go back to."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from broker.partitions.partition import Partition
from broker.share.letters.source import RecordSource

T = TypeVar("T")


class OtherNodes(Protocol):
    """Asks the leaders. Used from the event loop."""

    async def bounds(self, partition: Partition) -> tuple[int, int]:
        """Log start and high watermark. KafkaError."""

    def source(self, partition: Partition) -> RecordSource:
        """The records, for work of `run`. From any thread."""

    def run(self, work: Callable[[], T]) -> Awaitable[T]:
        """The result of reads here and elsewhere, on a thread that may wait for another node."""

    async def append(self, partition: Partition, batch: bytes) -> None:
        """Returns when the batch is durable. KafkaError: it is not there, or nobody knows."""
