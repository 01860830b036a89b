"""The shards of one incarnation: taken over, served, given away, lost.

The rows say what is owned; this follows them. A shard is loaded from what is committed, in
statements that begin after the one that took it has committed: so all that an earlier owner could
have been answered for is in it. What the catalog says of a shard counts whatever was meant before:
a take or a gift whose answer was lost needs nothing of its own.
"""

import asyncio
from collections.abc import Callable, Sequence

from broker.fleet.bodies import CommittedBodies
from broker.fleet.catalog.rows import Incarnation, OwnedShard, PartitionKey, PartitionRow
from broker.fleet.checkpointer import CommittedSpans
from broker.fleet.committer import FleetReach
from broker.fleet.host import OwnedLog, ShardHost
from broker.fleet.loads import Loads, NotLoaded
from broker.fleet.trimming import OwnerCommits
from broker.runtime.event_log import event


class Ownership:
    """Used from one event loop, by one task at a time but for `refresh`."""

    def __init__(
        self,
        reach: FleetReach,
        host: ShardHost,
        me: Incarnation,
        commits: OwnerCommits,
        spans: CommittedSpans,
        *,
        knows: Callable[[PartitionRow], bool],
    ) -> None:
        """Nothing is owned. `knows`: whether the node has a partition's topic by now."""
        self._knows = knows
        self._catalog, self._store, self._clock, self._times, _, self._tally = reach
        self._host = host
        self._me = me
        self._commits, self._committer = commits, commits.committer
        self._spans = spans
        self._loads = Loads(self._clock, self._times)
        self._bodies = CommittedBodies(self._catalog, self._store)
        self.shards: dict[OwnedShard, dict[PartitionKey, OwnedLog]] = {}
        self._given: OwnedShard | None = None
        """The shard that is being given away: nothing of it is served any more."""
        self._renewable_at: dict[int, float] = {}
        """Moments from which a shard may be renewed once more, by number (monotonic seconds)."""

    async def follow(self) -> Sequence[NotLoaded]:
        """Takes over what is newly owned and has the partitions that the rows have. CatalogError.

        Waits for a moment for what it begins to load; it goes on after that. What could not be
        loaded since the last call is tried again by a later one.
        """
        await self.lose()
        owned = await self._catalog.owned(self._me)
        keys = await self._catalog.keys([each.shard_id for each in owned])
        lacking = []
        for shard in owned:
            logs = self.shards.setdefault(shard, {})
            of_shard = {key for key, shard_id in keys.items() if shard_id == shard.shard_id}
            for gone in logs.keys() - of_shard:
                self._drop(logs.pop(gone), is_deleted=True)
            self._loads.forget(shard, of_shard)
            if any(self._loads.is_due(shard, key) for key in of_shard - logs.keys()):
                lacking.append(shard)
        if lacking:
            await self._load_lacking(lacking)
        return self._loads.taken_failures()

    async def _load_lacking(self, shards: Sequence[OwnedShard]) -> None:
        rows = await self._catalog.partitions([each.shard_id for each in shards])
        if self._loads.is_idle:  # bodies of one take-over, of which many have parts of many
            self._bodies = CommittedBodies(self._catalog, self._store)
        epochs = {each.shard_id: each for each in shards}
        begun = [
            self._loads.begin(row, epochs[row.shard_id], self._load)
            for row in rows
            if self._is_lacking(row, epochs[row.shard_id])
        ]
        if begun:
            await asyncio.wait(begun, timeout=self._times.watch)

    def _is_lacking(self, row: PartitionRow, shard: OwnedShard) -> bool:
        is_here = row.partition in self.shards.get(shard, ())
        return not is_here and self._knows(row) and self._loads.is_due(shard, row.partition)

    async def lose(self) -> bool:
        """Lets go of shards that the rows say are others'; False when there are none."""
        owned = set(await self._catalog.owned(self._me))
        lost = [each for each in self.shards if each not in owned]
        for shard in lost:
            self.release(shard)
        return bool(lost)

    def has(self, partition: PartitionKey) -> bool:
        """False for one that was not loaded, or that was let go."""
        return any(partition in logs for logs in self.shards.values())

    async def drop_deleted(self) -> None:
        """Lets go of partitions that were deleted."""
        keys = await self._catalog.keys([each.shard_id for each in self.shards])
        gone = [(logs, key) for logs in self.shards.values() for key in logs if key not in keys]
        for logs, key in gone:
            self._drop(logs.pop(key), is_deleted=True)

    async def give(self, shard: OwnedShard, to: Incarnation) -> None:
        """Ends the shard's writes, commits what there is, and hands it on. CatalogError.

        Whether it is another's then, the rows say. If it is not, its partitions are loaded again in
        the same epoch: so none of them is served from here on, also when its load ends just now, or
        a commit of its records would come after the load, in which they were cut.
        """
        self._given = shard
        try:
            await self._end_writes(shard)
            if shard in self.shards:
                self.release(shard)
                await self._catalog.give(self._me, shard, to)
                self._tally.given_shards += to != self._me
        finally:
            self._given = None

    async def _end_writes(self, shard: OwnedShard) -> None:
        """Returns when all that was written to the shard is committed."""
        logs = list(self.shards.get(shard, {}).values())
        for log in logs:
            self._host.end_writes(log)
        while not all(map(self._is_flushed, logs)):
            await self._clock.sleep(self._times.flush)

    def _is_flushed(self, log: OwnedLog) -> bool:
        if not log.takes_records:  # its bytes are not to be trusted: nothing more is committed
            self._committer.forget(log)
        return self._committer.is_flushed(log)

    async def renew(self) -> None:
        """Takes shards in a new epoch of which a log takes no records any more: so it is made from
        what is committed. CatalogError.

        A shard is left as it is for a while after that: the next log may fail, too.
        """
        for shard, logs in list(self.shards.items()):
            failed = sum(not each.takes_records for each in logs.values())
            now = self._clock.monotonic()
            if failed and now >= self._renewable_at.get(shard.shard_id, now):
                self._renewable_at[shard.shard_id] = now + self._times.renewal_rest
                event("fleet_shard_renewed", "warning", shard=shard.shard_id, failed_logs=failed)
                await self.give(shard, self._me)

    def release(self, shard: OwnedShard) -> None:
        """Serves nothing of the shard any more."""
        self._loads.forget(shard)
        for log in self.shards.pop(shard, {}).values():
            self._drop(log)

    def release_all(self) -> None:
        """Serves nothing any more."""
        for shard in list(self.shards):
            self.release(shard)

    async def end(self) -> None:
        """Loads nothing any more."""
        await self._loads.end()

    async def _load(self, row: PartitionRow, shard: OwnedShard) -> None:
        if not self._stays(shard):  # lost while it waited
            return
        log = await self._host.load(row, shard, self._bodies.batches_of)
        logs = self.shards.get(shard)
        if logs is None or not (self._stays(shard) and self._knows(row)):  # lost or deleted
            self._host.end(log)
            return
        logs[row.partition] = log
        self._spans.add(log, row)
        try:
            self._host.serve(log, self._commits)
        except Exception:
            self._drop(logs.pop(row.partition))
            raise
        self._tally.loaded_partitions += 1

    def _stays(self, shard: OwnedShard) -> bool:
        return shard in self.shards and shard != self._given

    def _drop(self, log: OwnedLog, *, is_deleted: bool = False) -> None:
        self._spans.drop(log)
        if is_deleted:
            self._host.remove(log)
        else:
            self._host.end(log)
        self._committer.forget(log)
