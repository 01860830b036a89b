"""Loads of partitions: some at a time, each by itself, and tried again after pauses that grow.

A store that is silent holds up what is asked of it for long. What needs no store does not wait
behind that, nor does the node's look at others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple

from broker.fleet.catalog.rows import OwnedShard, PartitionKey, PartitionRow
from broker.fleet.pacing import FleetClock
from broker.fleet.times import FleetTimes

AT_ONCE = 4
"""Loads of each kind: of those that ask the store, and of the others."""
Load = Callable[[PartitionRow, OwnedShard], Awaitable[None]]


class NotLoaded(NamedTuple):
    """A partition, and why it could not be loaded."""

    partition: str
    error: Exception


class _Rest(NamedTuple):
    """Until when a partition is not tried again, and the pause before that."""

    until: float
    pause: float


class Loads:
    """Loads of one incarnation. Used from one event loop."""

    def __init__(self, clock: FleetClock, times: FleetTimes) -> None:
        """Nothing is loaded."""
        self._clock = clock
        self._times = times
        self._rooms = {asks: asyncio.Semaphore(AT_ONCE) for asks in (True, False)}
        self._tasks: dict[PartitionKey, asyncio.Future[None]] = {}
        self._rests: dict[tuple[OwnedShard, PartitionKey], _Rest] = {}
        self._failed: list[NotLoaded] = []

    @property
    def is_idle(self) -> bool:
        """True while nothing is under way."""
        return not self._tasks

    def is_due(self, shard: OwnedShard, partition: PartitionKey) -> bool:
        """False while the partition is being loaded, for whatever epoch, and while it rests."""
        rest = self._rests.get((shard, partition))
        is_rested = rest is None or rest.until <= self._clock.monotonic()
        return is_rested and partition not in self._tasks

    def begin(self, row: PartitionRow, shard: OwnedShard, load: Load) -> asyncio.Future[None]:
        """Loads a partition that is due, as soon as there is room."""
        task = asyncio.ensure_future(self._run(row, shard, load))
        self._tasks[row.partition] = task
        return task

    def taken_failures(self) -> Sequence[NotLoaded]:
        """Takes those that could not be loaded since the last call."""
        failed, self._failed = self._failed, []
        return failed

    def forget(self, shard: OwnedShard, but: Collection[PartitionKey] = ()) -> None:
        """The shard has these partitions and no others any more, or it is another's."""
        for each in [each for each in self._rests if each[0] == shard and each[1] not in but]:
            del self._rests[each]

    async def end(self) -> None:
        """Nothing is loaded any more."""
        tasks = list(self._tasks.values())
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, row: PartitionRow, shard: OwnedShard, load: Load) -> None:
        try:
            async with self._rooms[_asks_the_store(row)]:
                await load(row, shard)
        except Exception as error:  # noqa: BLE001 - one that cannot be loaded is one
            self._failed.append(NotLoaded(f"{row.topic}-{row.partition.number}", error))
            self._rest(shard, row.partition)
        else:
            self._rests.pop((shard, row.partition), None)
        finally:
            del self._tasks[row.partition]

    def _rest(self, shard: OwnedShard, partition: PartitionKey) -> None:
        before = self._rests.get((shard, partition))
        pause = self._times.retry_most if before is None else 2 * before.pause
        pause = min(pause, self._times.load_retry_most)
        self._rests[shard, partition] = _Rest(self._clock.monotonic() + pause, pause)


def _asks_the_store(row: PartitionRow) -> bool:
    return row.manifest is not None or any(each.object_key is not None for each in row.spans)
