"""Makes room on a disk that runs short of space, as far as the tier can.

Heard after each look at the disk. While space is scarce: the round of copies begins at once, and
again when it is over; files of segments that the store has go without `file.delete.delay.ms`;
producers are slowed to what that keeps up with. Before all that the cache gives its share back: it
takes nothing that would make space scarce, but for what its readers need (`ObjectCache`).
"""

from collections.abc import Callable
from typing import NamedTuple

from broker.guards.disk_space import DiskSpace
from broker.runtime.lanes import DiskLane
from broker.tier.tier import Tier
from storage.directory.log_manager import LogManager

HASTE_SECONDS = 1.0  # between two rounds, at least
FAILING_SECONDS = 5.0  # the same while the store, or a partition, fails


class RoomParts(NamedTuple):
    """The services that make room."""

    space: DiskSpace
    tier: Tier
    logs: LogManager
    disk: DiskLane
    monotonic: Callable[[], float]
    """Of the machine, whatever the broker's clock does."""
    hasten: Callable[[], None]
    """Has the round of copies begin soon."""
    slow_producers: Callable[[bool], None]
    """True: producers get `DiskSpace.bytes_per_second` at most, until the next call says False."""


class TierRoom:
    """Used from the event loop."""

    def __init__(self, parts: RoomParts) -> None:
        """Nothing is done before the first look."""
        self._parts = parts
        self._hasten_at = 0.0

    async def looked(self) -> None:
        """The disk was looked at. StorageError: some files could not go."""
        parts = self._parts
        is_scarce = parts.space.is_scarce
        parts.slow_producers(parts.space.is_tight)
        if is_scarce:
            self._hasten()
        await self._share_with_cache()
        if is_scarce:
            while await parts.disk.run(parts.logs.remove_copied):
                pass

    async def _share_with_cache(self) -> None:
        """The cache leaves so much free that producers are not slowed for what it could give."""
        space, cache = self._parts.space, self._parts.tier.cache
        free_bytes = space.reserve_bytes + 2 * space.margin_bytes
        if space.free_bytes < free_bytes or not cache.keep_free_bytes:
            await self._parts.disk.run(cache.leave_free, free_bytes, space.capacity_bytes)

    def _hasten(self) -> None:
        now, tally = self._parts.monotonic(), self._parts.tier.tally
        if now < self._hasten_at:
            return
        is_failing = bool(tally.failing or tally.unreachable_because)
        self._hasten_at = now + (FAILING_SECONDS if is_failing else HASTE_SECONDS)
        self._parts.hasten()
