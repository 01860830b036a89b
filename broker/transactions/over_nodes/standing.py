"""State of a node at the moment, as its part in transactions asks for it."""

from typing import NamedTuple, Protocol

from broker.fleet.catalog.ledger import TransactionLedger
from broker.fleet.catalog.rows import Incarnation, OwnedShard, PartitionKey
from broker.fleet.pacing import FleetClock
from broker.fleet.times import FleetTimes
from broker.partitions.partition import Partition
from broker.topics.topic_catalog import TopicCatalog
from broker.transactions.transaction import Place


class FleetStanding(Protocol):
    """The present life of this node."""

    @property
    def me(self) -> Incarnation | None:
        """None between two lives."""

    def shard_of(self, partition: Partition) -> OwnedShard | None:
        """The shard of a partition that is led here; None for others."""


class PartitionNames:
    """Partitions by the names that clients have for them, and by the keys of the rows."""

    def __init__(self, topics: TopicCatalog) -> None:
        """`topics` as this node knows them."""
        self._topics = topics

    def key(self, place: Place) -> PartitionKey | None:
        """None when there is no such partition."""
        topic = self._topics.image.topics.get(place[0])
        if topic is None or topic.partition(place[1]) is None:
            return None
        return PartitionKey(topic.topic_id, place[1])

    def partition(self, key: PartitionKey) -> Partition | None:
        """None while this node does not know it."""
        topic = self._topics.image.by_id.get(key.topic_id)
        return None if topic is None else topic.partition(key.number)


class TransactionReach(NamedTuple):
    """The rows of transactions, and what a node needs to read them."""

    ledger: TransactionLedger
    standing: FleetStanding
    names: PartitionNames
    clock: FleetClock
    times: FleetTimes
