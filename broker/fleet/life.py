"""Lives of a node: each one registers, renews its lease, owns shards and commits, until it ends.

A life ends when a row says so: it was fenced, or a commit was refused. Then nothing of it is
answered any more, and the next one begins from what is committed. A catalog that does not answer
ends no life: what waits goes on waiting, and reads go on for a while.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from uuid import UUID

from broker.fleet.balance import LoadTerms, plan
from broker.fleet.catalog.port import CatalogError
from broker.fleet.catalog.rows import (
    Incarnation,
    OwnedShard,
    PartitionKey,
    Registration,
)
from broker.fleet.checkpointer import Checkpointer, CommittedSpans
from broker.fleet.commit_objects import RowRoom
from broker.fleet.committer import Committer, FleetReach, Identity, LifeEnded
from broker.fleet.frame import CorruptFrame
from broker.fleet.host import ShardHost
from broker.fleet.image import FleetImage
from broker.fleet.loads import NotLoaded
from broker.fleet.node_watch import NodeWatch
from broker.fleet.ownership import Ownership
from broker.fleet.pacing import until_answered
from broker.fleet.tally import ShardRates
from broker.fleet.trimming import OwnerCommits, Trimming
from broker.fleet.unnamed_objects import remove_orphans, remove_unnamed, sweep_commits
from broker.runtime.callbacks import failed
from broker.runtime.event_log import event
from storage.errors import DiskError, StorageError

PASSING = (CatalogError, StorageError, CorruptFrame)
"""Errors of a round; the next one tries again."""


class DiskBroken(Exception):  # noqa: N818 - what happened
    """The device of this node's directory has failed, and it owns no shards any more."""


class Life:
    """One incarnation."""

    def __init__(
        self, reach: FleetReach, host: ShardHost, identity: Identity, image: FleetImage
    ) -> None:
        """It was just registered."""
        self._reach = reach
        self._image = image
        self._metadata_version = 0
        self.is_leaving = False
        """It gives away all that it has and takes nothing."""
        self.is_empty = False
        """It leaves, and has nothing that anybody would take."""
        self._has_broken_disk = False
        self.me = me = identity.me
        self.renewed_at = reach.clock.monotonic()
        """Begin of the last renewal that was answered."""
        self.held_since = self.renewed_at
        """Monotonic seconds: at first, or at a renewal after the lease was over."""
        most = inf if reach.store is None else reach.times.most_row_bytes
        self.spans = CommittedSpans(RowRoom(most, reach.clock.monotonic))
        self.committer = Committer(reach, identity, self.spans.committed)
        self.trimming = Trimming(reach, me, self.spans)
        """Log starts and manifests of its logs, in the rows."""
        commits = OwnerCommits(self.committer, self.trimming)
        self.ownership = Ownership(reach, host, me, commits, self.spans, knows=image.knows)
        self._watch = NodeWatch(reach.catalog, reach.clock, reach.times)
        self._rates = ShardRates()
        self._moved_at = self.renewed_at
        """Monotonic seconds of the last gift of a shard for its load; at first those of now."""
        self._checkpointer = None
        if reach.store is not None:
            self._checkpointer = Checkpointer(reach, self.committer, self.spans, identity)

    @property
    def answers_reads(self) -> bool:
        """False once it may be that others own its shards for long."""
        return self.silent_seconds <= self._reach.times.read_only_after

    @property
    def is_held(self) -> bool:
        """As `Lease` has it: who fences it has seen no renewal for a whole lease."""
        return self.silent_seconds <= self._reach.times.lease

    @property
    def silent_seconds(self) -> float:
        """For how long no renewal of its lease was answered."""
        return self._reach.clock.monotonic() - self.renewed_at

    async def run(self) -> None:
        """Lives. LifeEnded, DiskBroken, or what nobody expected of a commit, renewal or look."""
        watch = self._reach.times.watch
        works = [
            self.committer.run(self),
            self._renew(),
            self._looks(watch),
            self._rounds(watch, self.trimming.round),
            self._rounds(self._reach.times.loads, self._report_loads),
            self._rounds(self._reach.times.sweep, self._sweep_commits),
            self._end_when_silent(watch),
            self._refuse_when_silent(watch),
        ]
        if self._checkpointer is not None:
            works.append(self._rounds(watch, self._checkpoint))
            works.append(self._rounds(self._reach.times.checkpoint, self._remove_unnamed))
            works.append(self._rounds(self._reach.times.sweep, self._remove_orphans))
        tasks = [asyncio.ensure_future(each) for each in works]
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for each in ended:
                each.result()
        finally:
            self.ownership.release_all()
            self.committer.end()
            self.trimming.end()
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.ownership.end()

    # --- what the committer asks ---

    async def renewed(self) -> None:
        """As `LifeStanding` has it."""
        await until_answered(self._renewal, self._reach.clock, self._reach.times)

    async def stale(self, shards: Sequence[OwnedShard]) -> bool:
        """As `LifeStanding` has it."""
        await until_answered(self.ownership.lose, self._reach.clock, self._reach.times)
        return any(each not in self.ownership.shards for each in shards)

    async def deleted(self, named: Sequence[PartitionKey]) -> bool:
        """As `LifeStanding` has it."""
        await until_answered(self.ownership.drop_deleted, self._reach.clock, self._reach.times)
        return not all(map(self.ownership.has, named))

    # --- tasks ---

    async def _renew(self) -> None:
        while True:
            try:
                await self._renewal()
            except CatalogError as error:
                event("fleet_lease_not_renewed", "warning", error=str(error))
            await self._reach.clock.sleep(self._reach.times.renew)

    async def _renewal(self) -> None:
        clock, gap = self._reach.clock, self._reach.tally.clock_gap
        began, wall_ms = clock.monotonic(), clock.wall_ms()
        renewal = await self._reach.catalog.renew(self.me, gap.ahead_ms)
        if renewal is None:
            raise LifeEnded("it was fenced")
        gap.seen(wall_ms, renewal.now_ms, clock.wall_ms())
        if not self.is_held:
            self.held_since = clock.monotonic()
        self.renewed_at = max(self.renewed_at, began)
        self._metadata_version = max(self._metadata_version, renewal.metadata_version)

    async def _end_when_silent(self, seconds: float) -> None:
        """Whoever reads here may by now miss what others have committed. LifeEnded."""
        while self.answers_reads:
            await self._reach.clock.sleep(seconds)
        raise LifeEnded(f"the catalog has not answered for {self.silent_seconds:.0f} s")

    async def _refuse_when_silent(self, seconds: float) -> None:
        """Whoever waits here for a commit looks for the leader once that may be another."""
        while True:
            await self._reach.clock.sleep(seconds)
            if not self.is_held:
                self.committer.refuse_waiting()

    async def _rounds(self, seconds: float, once: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await once()
            except PASSING as error:
                _round_failed(error)
            except LifeEnded:
                raise
            except Exception as fault:  # noqa: BLE001 - commits go on without it
                failed("fleet", fault)
            await self._reach.clock.sleep(seconds)

    async def _looks(self, seconds: float) -> None:
        """A look when something has changed, and now and then in any case."""
        while True:
            try:
                await self._look()
                if await self._reach.catalog.changed(seconds):
                    await self._renewal()  # which says how new the topics are
                    continue
            except PASSING as error:
                if isinstance(error, CatalogError):
                    self._watch.failed()
                _round_failed(error)
                await self._reach.clock.sleep(seconds)

    async def _look(self) -> None:
        catalog = self._reach.catalog
        await self._follow_image()
        silent = await self._watch.look(is_alive=self.is_held)
        is_leaving = self.is_leaving
        if is_leaving:  # first: who does not know would give back what is given here
            await catalog.leave(self.me)
        nodes, shards = await catalog.nodes(), await catalog.shards()
        chosen = plan(
            self.me,
            nodes,
            shards,
            silent - {self.me},
            self._image.spread,
            terms=self._load_terms(),
        )
        if chosen.take:
            await catalog.take(self.me, chosen.take)
        await self.ownership.renew()
        not_loaded = await self.ownership.follow()
        self._image.seen(await catalog.nodes(), await catalog.shards())
        for gift in chosen.gifts:
            await self.ownership.give(gift.shard, gift.to)
        if chosen.is_for_load:
            self._moved_at = self._reach.clock.monotonic()
            self._reach.tally.moved_for_load += 1
            event(
                "fleet_shard_moved_for_load", "info", shard=chosen.gifts[0].shard.shard_id,
                node=chosen.gifts[0].to.node_id,
            )  # fmt: skip
        self.is_empty = is_leaving and not chosen.gifts
        _report(not_loaded)
        for each in not_loaded:
            self._leave_if_of_disk(each.error)
        had = self.ownership.shards or any(each.owner == self.me for each in shards)
        if self._has_broken_disk and not had:
            raise DiskBroken

    async def _follow_image(self) -> None:
        """As far as this node can: while its disk refuses a topic it serves the others."""
        try:
            await self._image.follow(self._metadata_version)
        except StorageError as error:
            _round_failed(error)
            self._leave_if_of_disk(error)

    def _leave_if_of_disk(self, error: Exception) -> None:
        """Others lead what this disk cannot have. While there are none, it leads the rest."""
        is_of_disk = isinstance(error, DiskError) and error.is_of_device
        if is_of_disk and not self._has_broken_disk:
            self._has_broken_disk = self.is_leaving = True
            event("fleet_disk_failed", "error", node=self.me.node_id, error=str(error))

    def _load_terms(self) -> LoadTerms:
        """None moves for its load before the nodes have reported twice after the last one."""
        times = self._reach.times
        rested = self._reach.clock.monotonic() - self._moved_at
        return LoadTerms(times.load_gap, may_give=rested >= times.load_rest)

    async def _report_loads(self) -> None:
        reach, led = self._reach, list(self.ownership.shards)
        loads = self._rates.measure(reach.tally.shard_bytes, led, reach.clock.monotonic())
        if loads:
            await reach.catalog.report_loads(self.me, loads)

    async def _checkpoint(self) -> None:
        assert self._checkpointer is not None
        await self._checkpointer.when_due(self._reach.clock)

    async def _remove_unnamed(self) -> None:
        assert self._reach.store is not None
        removed = await remove_unnamed(self._reach.catalog, self._reach.store)
        self._reach.tally.removed_objects += removed

    async def _sweep_commits(self) -> None:
        keep_ms = round(self._reach.times.keep * 1000)
        await sweep_commits(self._reach.catalog, keep_ms)

    async def _remove_orphans(self) -> None:
        assert self._reach.store is not None
        removed = await remove_orphans(self._reach.catalog, self._reach.store)
        self._reach.tally.removed_objects += removed


class FleetNode:
    """A node: one life after the other."""

    def __init__(
        self,
        reach: FleetReach,
        host: ShardHost,
        order: Registration,
        fleet_id: UUID,
        image: FleetImage,
    ) -> None:
        """It does not live yet."""
        self._reach = reach
        self._host = host
        self._order = order
        self._fleet_id = fleet_id
        self._image = image
        self.life: Life | None = None
        """The present one; None between two."""
        self._is_leaving = False

    async def leave(self) -> None:
        """Gives all shards away; returns when there is nothing that anybody would take."""
        self._is_leaving = True
        while (life := self.life) is not None and not life.is_empty:
            life.is_leaving = True
            await self._reach.clock.sleep(self._reach.times.flush)

    async def run(self) -> None:
        """Lives, until it is cancelled, or its disk has failed and others have its shards."""
        while True:
            try:
                await self._live(await self._registered())
            except DiskBroken:
                return
            except Exception as fault:  # noqa: BLE001 - the next life begins from what is committed
                failed("fleet", fault)
                await self._reach.clock.sleep(self._reach.times.retry_most)

    async def _live(self, me: Incarnation) -> None:
        """One life, to its end."""
        life = Life(self._reach, self._host, Identity(me, self._fleet_id), self._image)
        self.life = life
        self._reach.tally.lives += 1
        life.is_leaving = self._is_leaving
        event("fleet_life_begins", "info", node=me.node_id, incarnation=me.number)
        try:
            await life.run()
        except LifeEnded as ended:
            event("fleet_life_ends", "warning", incarnation=me.number, reason=str(ended))
        finally:
            self.life = None

    async def _registered(self) -> Incarnation:
        """A new life. One of another directory has the node's id until it is silent for a lease."""
        reach = self._reach
        watch = NodeWatch(reach.catalog, reach.clock, reach.times)
        while True:
            me = await until_answered(
                lambda: reach.catalog.register(self._order), reach.clock, reach.times
            )
            if me is not None:
                return me
            event("fleet_node_id_taken", "error", node=self._order.node_id)
            await until_answered(lambda: watch.look(is_alive=True), reach.clock, reach.times)
            await reach.clock.sleep(reach.times.watch)


def _round_failed(error: Exception) -> None:
    event("fleet_round_failed", "warning", error=f"{type(error).__name__}: {error}")


def _report(not_loaded: Sequence[NotLoaded]) -> None:
    """Of one round the first is named: of a store that is away there are many."""
    if not_loaded:
        partition, error = not_loaded[0]
        if not isinstance(error, PASSING):
            failed("fleet", error)
        reason = f"{partition}: {type(error).__name__}: {error}"
        others = f", and {len(not_loaded) - 1} more" if len(not_loaded) > 1 else ""
        event("fleet_round_failed", "warning", error=f"not loaded: {reason}{others}")
