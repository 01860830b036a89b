"""Counts of what a node does in its fleet, over all its lives. Written on the loop alone."""

from collections import Counter
from collections.abc import Collection, Mapping

from broker.fleet.catalog.rows import OwnedShard
from broker.fleet.pacing import ClockGap
from broker.runtime.probes import Histogram


class FleetTally:
    """All counts begin with the process."""

    def __init__(self) -> None:
        """Nothing happened yet."""
        self.lives = 0
        """Incarnations that began."""
        self.answers: Counter[str] = Counter()
        """Answers of the catalog to commits and checkpoints."""
        self.commits = Histogram()
        """From the begin of a commit to its answer, the put of its object with it (s)."""
        self.inline_bytes = 0
        """Bytes of commits that went into the catalog."""
        self.object_bytes = 0
        """Bytes of commits that went into the store."""
        self.checkpoints = 0
        self.loaded_partitions = 0
        """Partitions that were loaded to be led here."""
        self.given_shards = 0
        self.moved_for_load = 0
        """Those of them that were given because their node took more than another."""
        self.shard_bytes: Counter[int] = Counter()
        """Bytes that were committed, by shard, while it was led here."""
        self.clock_gap = ClockGap()
        self.removed_objects = 0
        """Objects that no row named any more."""


class ShardRates:
    """Bytes a second by shard, out of counts that only grow."""

    def __init__(self) -> None:
        """Nothing was counted."""
        self._at = 0.0
        self._counts: Mapping[OwnedShard, int] = {}
        self._rates: Mapping[OwnedShard, float] = {}

    def measure(
        self, counts: Mapping[int, int], led: Collection[OwnedShard], now: float
    ) -> dict[int, int]:
        """Rates of those that were led at the last call, too; `now` in monotonic seconds.

        Half of each is the rate of before, so that a short pause or burst counts for little.
        """
        seconds = max(now - self._at, 0.001)
        rates = dict[OwnedShard, float]()
        for each in self._counts.keys() & set(led):
            rate = (counts.get(each.shard_id, 0) - self._counts[each]) / seconds
            rates[each] = (self._rates.get(each, rate) + rate) / 2
        self._at, self._rates = now, rates
        self._counts = {each: counts.get(each.shard_id, 0) for each in led}
        return {each.shard_id: int(rate) for each, rate in rates.items()}
