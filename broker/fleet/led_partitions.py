"""Partitions of a node of a fleet, as its clients meet them: led here, or by another node."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from broker.fleet.catalog.rows import OwnedShard, PartitionKey, ShardRow, TopicRow
from broker.fleet.fleet_commit import FleetCommit
from broker.fleet.host import WriteCommits
from broker.fleet.local_logs import LocalLog
from broker.partitions.leadership import NOBODY, Leadership, Lease
from broker.partitions.partition import Partition
from broker.topics.topic_catalog import TopicCatalog
from storage.log.log import Log


class _Led(NamedTuple):
    """A log in service, and its partition."""

    log: LocalLog
    partition: Partition


class Coordinating(Protocol):
    """A coordinator that remembers in partitions of which each has its leader."""

    def gained(self, partition: Partition) -> None:
        """It is led here from now on."""

    def lost(self, partition: Partition) -> None:
        """It is led elsewhere from now on."""


class LedPartitions:
    """The `Front` of a broker. Used from the event loop."""

    def __init__(
        self,
        node_id: int,
        topics: TopicCatalog,
        commit: FleetCommit,
        coordinators: Mapping[str, Coordinating],
        *,
        monotonic: Callable[[], float],
        lease: Lease,
    ) -> None:
        """Nothing is led here. `coordinators` by the names of the topics that they remember in."""
        self._monotonic = monotonic
        self._lease = lease
        self._coordinators = coordinators
        self._node_id = node_id
        self._topics = topics
        self._commit = commit
        self._here: dict[PartitionKey, _Led] = {}
        self.on_lost: Callable[[Partition], None] = lambda _: None
        """Hears of each partition that is led here no more."""

    def serve(self, log: LocalLog, commits: WriteCommits) -> None:
        """As the port has it."""
        partition = self._topics.put_in_service(log.log)
        self._here[log.partition] = _Led(log, partition)
        self._commit.serve(log.log, log, commits)
        epoch, now = log.shard.epoch, self._monotonic()
        partition.led_by(Leadership(self._node_id, epoch, True, now, self._lease))
        coordinator = self._coordinators.get(partition.topic)
        if coordinator is not None:
            coordinator.gained(partition)

    def committed(self, log: LocalLog) -> None:
        """As the port has it."""
        here = self._of(log)
        if here is not None:
            here.partition.writer.became_durable()

    def end_writes(self, log: LocalLog) -> None:
        """As the port has it."""
        here = self._of(log)
        if here is not None:
            here.partition.writer.led_by(_nobody(log.shard.epoch))

    def end(self, log: LocalLog) -> None:
        """As the port has it."""
        here = self._of(log)
        if here is not None:
            del self._here[log.partition]
            here.partition.led_by(_nobody(log.shard.epoch))
            self._commit.end(log.log, log)
            coordinator = self._coordinators.get(here.partition.topic)
            if coordinator is not None:
                coordinator.lost(here.partition)
            self.on_lost(here.partition)

    def led_elsewhere(self, topics: Iterable[TopicRow], shards: Mapping[int, ShardRow]) -> None:
        """Leaders as the rows have them, of partitions that are not led here.

        A topic that has grown since its row was read has partitions that the row does not: those
        wait for the next one.
        """
        for row in topics:
            image = self._topics.image.by_id.get(row.topic_id)
            for partition in () if image is None else image.partitions[: len(row.shards)]:
                if PartitionKey(row.topic_id, partition.index) not in self._here:
                    _follow(partition, shards[row.shards[partition.index]])

    def shard_of(self, partition: Partition) -> OwnedShard | None:
        """The shard of a partition that is led here; None for others."""
        log = self.owned(partition.log)
        return None if log is None else log.shard

    def owned(self, log: Log) -> LocalLog | None:
        """A log as it is led here; None for others."""
        key = None if log.topic_id is None else PartitionKey(log.topic_id, log.partition)
        here = None if key is None else self._here.get(key)
        return here.log if here is not None and here.log.log is log else None

    def _of(self, log: LocalLog) -> _Led | None:
        here = self._here.get(log.partition)
        return here if here is not None and here.log is log else None


def nobody_yet(partition: Partition) -> Partition:
    """A partition before it is known who leads it."""
    partition.led_by(_nobody(0))
    return partition


def _nobody(epoch: int) -> Leadership:
    return Leadership(NOBODY, epoch, is_here=False)


def _follow(partition: Partition, shard: ShardRow) -> None:
    leader = NOBODY if shard.owner is None else shard.owner.node_id
    now = Leadership(leader, shard.epoch, is_here=False)
    if partition.leadership != now:
        partition.led_by(now)
