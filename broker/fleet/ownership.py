"""The shards of one incarnation: taken over, served, given away, lost.

The rows say what is owned; this follows them. A shard is loaded from what is committed, in
statements that begin after the one that took it has committed: so all that an earlier owner could
have been answered for is in it. What the catalog says of a shard counts whatever was meant before:
a take or a gift whose answer was lost needs nothing of its own.
"""

from collections.abc import Callable, Sequence

from broker.fleet.bodies import CommittedBodies
from broker.fleet.catalog.rows import Incarnation, OwnedShard, PartitionKey, PartitionRow
from broker.fleet.checkpointer import CommittedSpans
from broker.fleet.committer import FleetReach
from broker.fleet.host import OwnedLog, ShardHost
from broker.fleet.trimming import OwnerCommits


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
        self.shards: dict[OwnedShard, dict[PartitionKey, OwnedLog]] = {}

    async def follow(self) -> None:
        """Takes over what is newly owned and has the partitions that the rows have. CatalogError.

        CorruptFrame, StoreError: what could not be loaded is tried again by the next call.
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
            if of_shard - logs.keys():
                lacking.append(shard)
        if lacking:
            await self._load_lacking(lacking)

    async def _load_lacking(self, shards: Sequence[OwnedShard]) -> None:
        rows = await self._catalog.partitions([each.shard_id for each in shards])
        bodies = CommittedBodies(self._catalog, self._store)
        epochs = {each.shard_id: each for each in shards}
        left: list[Exception] = []
        for row in rows:
            shard = epochs[row.shard_id]
            if row.partition not in self.shards.get(shard, ()) and self._knows(row):
                try:
                    await self._load(row, shard, bodies)
                except Exception as error:  # noqa: BLE001 - one that cannot be loaded is one
                    left.append(error)
        if left:
            raise left[0]

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

        Whether it is another's then, the rows say.
        """
        logs = list(self.shards.get(shard, {}).values())
        for log in logs:
            self._host.end_writes(log)
        while not all(self._committer.is_flushed(log) for log in logs):
            await self._clock.sleep(self._times.flush)
        if shard in self.shards:
            self.release(shard)
            await self._catalog.give(self._me, shard, to)
            self._tally.given_shards += 1

    def release(self, shard: OwnedShard) -> None:
        """Serves nothing of the shard any more."""
        for log in self.shards.pop(shard, {}).values():
            self._drop(log)

    def release_all(self) -> None:
        """Serves nothing any more."""
        for shard in list(self.shards):
            self.release(shard)

    async def _load(self, row: PartitionRow, shard: OwnedShard, bodies: CommittedBodies) -> None:
        log = await self._host.load(row, shard, bodies.batches_of)
        logs = self.shards.get(shard)
        if logs is None or not self._knows(row):  # lost or deleted meanwhile
            self._host.end(log)
            return
        self._tally.loaded_partitions += 1
        logs[row.partition] = log
        self._spans.add(log, row)
        self._host.serve(log, self._commits)

    def _drop(self, log: OwnedLog, *, is_deleted: bool = False) -> None:
        self._spans.drop(log)
        if is_deleted:
            self._host.remove(log)
        else:
            self._host.end(log)
        self._committer.forget(log)
