"""The port of a fleet to its broker: logs of the partitions that the node owns."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from broker.fleet.catalog.rows import CommittedSpan, OwnedShard, PartitionKey, PartitionRow
from broker.fleet.frame import ArrivedBatch, StoredBatch


class OwnedLog(Protocol):
    """The log of a partition in one epoch of its shard."""

    @property
    def partition(self) -> PartitionKey:
        """Its partition."""

    @property
    def shard(self) -> OwnedShard:
        """The shard, in the epoch for which the log was loaded."""

    @property
    def start_offset(self) -> int:
        """Its first record, or where that will be."""

    @property
    def durable_offset(self) -> int:
        """End of what is committed: the high watermark is never beyond."""

    @property
    def end_offset(self) -> int:
        """Behind the last record."""

    @property
    def takes_records(self) -> bool:
        """False for good once this disk has failed: its bytes may be others than were written."""

    def batches(self, begin: int, end: int, max_bytes: int) -> Sequence[StoredBatch]:
        """Batches from an offset that begins one on, below another: at least one if there is."""

    def mark_durable(self, offset: int) -> None:
        """Notes that everything below is committed."""

    def settled(self, offset: int) -> None:
        """Notes that batches below are not asked for any more: none of them is in a row alone."""


class WriteCommits(Protocol):
    """Operations of an incarnation's committer that writers use."""

    def request(
        self, log: OwnedLog, offset: int, done: Callable[[BaseException | None], None]
    ) -> None:
        """Calls `done(None)` once all of `log` below `offset` is committed, or `done(error)`."""

    def appended(self, log: OwnedLog) -> None:
        """There is more to commit."""

    def start_moved(self, log: OwnedLog, done: Callable[[BaseException | None], None]) -> None:
        """Calls `done(None)` once the rows have the log's start, or `done(error)`."""


BytesOf = Callable[[CommittedSpan], Awaitable[list[ArrivedBatch]]]
"""Reads the batches of a committed span. CatalogError, CorruptFrame; the store's errors."""


class ShardHost(Protocol):
    """The partitions of the node's shards. None is served before `serve`."""

    async def load(self, row: PartitionRow, shard: OwnedShard, bytes_of: BytesOf) -> OwnedLog:
        """Gives a log that has what is committed and nothing else.

        What the disk has and no commit goes: nobody was answered that it stays.
        """

    def serve(self, log: OwnedLog, commits: WriteCommits) -> None:
        """Clients may write to it and read it from now on; `commits` has what they write count."""

    def end_writes(self, log: OwnedLog) -> None:
        """Writes get NOT_LEADER_OR_FOLLOWER from now on; those that wait go on waiting."""

    def end(self, log: OwnedLog) -> None:
        """So does everything else, also what waits."""

    def remove(self, log: OwnedLog) -> None:
        """Its partition was deleted."""
