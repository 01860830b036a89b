"""The port to the rows of open transactions. Real: `broker.fleet.catalog.postgres_ledger`.

A partition has a row from before the first record of a transaction may be written to it, until the
marker that ends it counts. A coordinator orders rows, the leader of a partition removes them. Calls
are as those of `broker.fleet.catalog.port`.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from broker.fleet.catalog.rows import Incarnation, OwnedShard, PartitionKey


class TransactionOrder(NamedTuple):
    """Decision of a coordinator. Sent again in the same words until the answer is known."""

    incarnation: Incarnation
    shard: OwnedShard
    """Shard of the partition in which the coordinator remembers the transactional id."""
    number: int
    """Rises with each order of an incarnation: one that is not the producer's newest is late."""
    producer_id: int
    producer_epoch: int
    commits: bool | None
    """The end of all that joined: True, committed; None: `partitions` join."""
    partitions: Sequence[PartitionKey] = ()


class OrderAnswer(StrEnum):
    """Result of an order. All but the first three mean that nothing was changed."""

    OK = "ok"
    ALREADY = "already"
    NO_PARTITION = "no partition"
    """One that is to join was deleted; the others take part."""
    LATE = "late"
    """A later order for this producer was there."""
    FENCED = "fenced"
    """The incarnation has ended."""
    STALE = "stale"
    """The coordinator's shard has another owner or epoch."""


def answer_to(order: TransactionOrder, answer: OrderAnswer, there: int) -> OrderAnswer:
    """The answer to an order of which so many partitions are there."""
    is_done = answer in {OrderAnswer.OK, OrderAnswer.ALREADY}
    is_less = there < len(set(order.partitions))
    return OrderAnswer.NO_PARTITION if is_done and is_less else answer


class EndedPartition(NamedTuple):
    """A partition that needs a marker."""

    producer_id: int
    partition: PartitionKey
    producer_epoch: int
    coordinator_epoch: int
    number: int
    """Of the order that ended it."""
    commits: bool


class TransactionLedger(Protocol):
    """The rows. Every call: CatalogError."""

    async def order(self, order: TransactionOrder) -> OrderAnswer:
        """Has partitions join a transaction, or ends it in all that joined."""

    async def joined(
        self, producer_id: int, keys: Sequence[PartitionKey]
    ) -> Mapping[PartitionKey, int]:
        """Those of the partitions that take part in its open transaction, with its epoch."""

    async def ended(self, me: Incarnation, at_most: int) -> Sequence[EndedPartition]:
        """Partitions of this incarnation's shards that need a marker; some, if they are many."""

    async def marked(self, rows: Sequence[EndedPartition]) -> None:
        """The markers of these count."""

    async def unmarked(self, producer_ids: Sequence[int]) -> frozenset[int]:
        """Those of the producers that still have a partition which needs a marker."""

    async def forget(self) -> None:
        """Producers without a transaction for a day are forgotten."""

    async def changed(self, seconds: float) -> bool:
        """Returns when a row may have changed that concerns this node, or after some seconds.

        By one task at a time.
        """
