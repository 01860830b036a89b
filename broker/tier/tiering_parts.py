"""Services of the tier's rounds, and of those who have to hear of them."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from broker.guards.clock_guard import ClockWatch
from broker.guards.disk_space import DiskSpace
from broker.partitions.partition import Partition
from broker.runtime.gathering import wait_for
from broker.runtime.lanes import DiskLane
from broker.tier.standing import TierStanding
from broker.tier.tier import Tier
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from storage.directory.log_manager import LogManager
from storage.env import Clock
from storage.log.log import Log
from storage.tier.tiered_log import TieredLog

T = TypeVar("T")


class Crews(NamedTuple):
    """Limits of partitions that do one kind of work at a time."""

    copiers: asyncio.Semaphore
    expirations: asyncio.Semaphore


class SharedSegments(Protocol):
    """The logs of a fleet: each is copied by its leader, and others have to hear of it first."""

    def is_led(self, log: Log) -> bool:
        """True for a log that this node may copy from."""

    async def named(self, tiered: TieredLog) -> None:
        """Returns when the present manifest counts. StorageError."""

    async def start_named(self, log: Log) -> None:
        """Returns when what is before the log's start may go. StorageError."""


class TierParts(NamedTuple):
    """The services that a round works with."""

    topics: TopicCatalog
    logs: LogManager
    config: ConfigStore
    clock: Clock
    clock_watch: ClockWatch
    disk: DiskLane
    tier: Tier
    standing: TierStanding
    sync: Callable[[Log], None]
    """Has a log synced soon: a segment that has ended is copied once it is on the disk."""
    space: DiskSpace
    shared: SharedSegments | None = None
    """None: this broker is alone, and copies the topics whose settings ask for it."""


async def in_turn(partition: Partition, change: Callable[[], T]) -> T:
    """Makes a change to a log when its turn among the partition's writes comes."""
    return await wait_for(partition.writer.in_turn(change))
