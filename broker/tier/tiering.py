"""The tier's round: closed segments go to the store, and what has left it may leave the disk.

For each tiered partition, as far as its settings say so: end a segment that is older than the
promise of `horolog.tier.max.lag.ms`, copy what is due, let local segments go that the store has,
and take out of the manifest what retention has removed. What asks the store runs on lanes of its
own; what changes the log takes its turn among the partition's writes. A partition that fails is
tried again in the next round, and keeps none of the others. One with a backlog copies until the
round's time is over: then the next one begins at once.
"""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial

from broker.partitions.partition import Partition
from broker.runtime.event_log import event
from broker.tier.round_time import RoundTime
from broker.tier.segment_endings import SegmentEndings
from broker.tier.store_removals import StoreRemovals
from broker.tier.tiering_parts import Crews, TierParts, in_turn
from protocol.errors import KafkaError
from storage.errors import StorageError
from storage.log.lifecycle import learn_times
from storage.log.log import Log
from storage.retention.local_limits import is_copied, local_limits_of, rounded_down
from storage.tier.carrying import Pace
from storage.tier.copying import DamagedSegment
from storage.tier.manifests.manifest import RemoteSegment
from storage.tier.single_writer import WriterReplaced
from storage.tier.tiered_log import TieredLog, TierMismatch

TIMES_AT_ONCE = 16
CopyNext = Callable[[Pace], RemoteSegment | None]
"""Copies the next segment that is due; None when there is none."""
FINAL = (WriterReplaced, TierMismatch)
"""Errors after which nothing more is copied until a person has looked."""


def while_copied(log: Log, copy_next: CopyNext) -> CopyNext:
    """The same, but nothing is due once the topic's settings have ended copying."""
    return lambda pace: copy_next(pace) if is_copied(log.config) else None


def _when_known(log: Log, droppable: Callable[[], int]) -> int | None:
    """The droppable offset; None while times of segments are unknown. DiskError, CorruptLog."""
    return droppable() if learn_times(log, TIMES_AT_ONCE) else None


class Tiering:
    """Rounds over all partitions. Used from the event loop."""

    def __init__(self, parts: TierParts) -> None:
        """Nothing was looked at."""
        self._parts = parts
        self._endings = SegmentEndings(parts)
        self._removals = StoreRemovals(parts.tier)
        self._time = self._new_time()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """The broker stops: nothing more is begun, what is under way ends at its own step."""
        self._stopping.set()

    def _new_time(self) -> RoundTime:
        return RoundTime(self._parts.clock.monotonic, self._parts.space)

    async def run(self) -> None:
        """One round, and others while there is more to copy."""
        await self._run_once()
        while self._time.has_left and not self._stopping.is_set():
            await self._run_once()

    async def _run_once(self) -> None:
        self._time = self._new_time()
        self._forget_gone()
        if self._stopping.is_set() or not await self._parts.standing.may_copy():
            return
        if self._parts.shared is None:
            await self._parts.standing.picture()
        settings = self._parts.config.broker_config
        crews = Crews(
            asyncio.Semaphore(settings.remote_log_manager_copier_thread_pool_size),
            asyncio.Semaphore(settings.remote_log_manager_expiration_thread_pool_size),
        )
        await asyncio.gather(*(self._visit(each, crews) for each in self._partitions()))
        await self._removals.run(self._stopping)

    def _partitions(self) -> Iterator[Partition]:
        for topic in self._parts.topics.image.topics.values():
            yield from topic.partitions

    def _forget_gone(self) -> None:
        logs = [each.log for each in self._partitions()]
        wanted = {(log.topic, log.partition) for log in logs if self._is_wanted(log)}
        self._parts.tier.tally.keep(frozenset(logs), wanted)

    def _is_wanted(self, log: Log) -> bool:
        if self._parts.shared is not None:
            return self._parts.shared.is_led(log)
        known = self._parts.tier.remote.logs.get((log.topic, log.partition))
        has_remote = known is not None and known.log is log and bool(known.manifest.segments)
        return log.config.remote_storage_enable or has_remote or self._is_state(log)

    async def _visit(self, partition: Partition, crews: Crews) -> None:
        log = partition.log
        if not log.takes_changes or not self._is_wanted(log) or log.topic_id is None:
            return
        if self._parts.tier.tally.is_stopped(log):
            return
        try:
            async with crews.copiers:
                if self._stopping.is_set():
                    return
                tiered = await self._round(partition)
            if self._parts.shared is not None:
                await self._parts.shared.start_named(log)
            async with crews.expirations:
                if self._stopping.is_set():
                    return
                await self._expire(partition, tiered)
        except (StorageError, KafkaError) as error:
            self._failed(log, error)
        else:
            self._parts.tier.tally.succeeded(log)

    async def _round(self, partition: Partition) -> TieredLog:
        log, parts = partition.log, self._parts
        tiered = await in_turn(partition, partial(parts.tier.remote.of, log))
        if parts.shared is not None:
            await self._shared_round(partition, tiered)
        elif self._is_state(log):
            await self._endings.of_age(partition)
            await self._copy(partition, tiered, self._mirror(tiered))
        elif is_copied(log.config):
            await self._endings.of_age(partition)
            is_rewritten = parts.logs.is_rewritten(log)
            copy_next = while_copied(
                log, self._mirror(tiered) if is_rewritten else tiered.copy_next
            )
            await self._copy(partition, tiered, copy_next, leaves=not is_rewritten)
            await self._endings.of_size(partition, tiered)
            await self._drop(partition, tiered)
        elif not log.config.remote_storage_enable and log.config.remote_log_delete_on_disable:
            await self._end(partition, tiered)
        return tiered

    async def _shared_round(self, partition: Partition, tiered: TieredLog) -> None:
        """In a fleet all is copied: what is in segments needs no commit, and is not loaded by the
        next leader. What leaves the disk, the topic's settings say.
        """
        is_rewritten = self._parts.logs.is_rewritten(partition.log)
        leaves = partition.log.config.remote_storage_enable and not is_rewritten
        await self._endings.of_age(partition)
        await self._endings.of_what_is_loaded(partition)
        copy_next = self._mirror(tiered) if is_rewritten else tiered.copy_next
        await self._copy(partition, tiered, copy_next, leaves=leaves)
        if leaves:
            await self._drop(partition, tiered)

    async def _named(self, tiered: TieredLog) -> None:
        if self._parts.shared is not None:
            await self._parts.shared.named(tiered)

    async def _end(self, partition: Partition, tiered: TieredLog) -> None:
        """The topic's tier has ended: it begins where its local part does, the store has nothing.

        As in KIP-950: also copies of what is on the disk go.
        """
        log, parts = partition.log, self._parts
        start = log.snapshot.local_start_offset
        await in_turn(partition, partial(parts.logs.remove_segments, log, start))
        gone = await parts.tier.copies.run(tiered.withdraw)
        await in_turn(partition, tiered.show)
        self._removals.put(tiered, gone)

    def _is_state(self, log: Log) -> bool:
        """True for the broker's own topics: they are copied, and stay on the disk as they are."""
        return log.topic in self._parts.topics.internal_topics

    async def _copy(
        self,
        partition: Partition,
        tiered: TieredLog,
        copy_next: CopyNext,
        *,
        leaves: bool = False,
    ) -> None:
        """Copies what is due, as long as the round has time. `leaves`: what has a copy may leave
        while others are copied.
        """
        parts = self._parts
        began = parts.clock.monotonic()
        while (row := await parts.tier.copies.run(copy_next, parts.tier.copy_pace)) is not None:
            await self._named(tiered)
            await in_turn(partition, tiered.show)
            parts.tier.tally.copied(row.size_bytes)
            event(
                "segment_copied",
                log=partition,
                first_offset=row.base_offset,
                bytes=row.size_bytes,
                seconds=round(parts.clock.monotonic() - began, 3),
            )
            if leaves:
                await self._drop(partition, tiered)
            if self._time.is_over() or self._stopping.is_set():
                break
            began = parts.clock.monotonic()
        await self._named(tiered)
        await in_turn(partition, tiered.show)  # what the last call has named

    def _mirror(self, tiered: TieredLog) -> CopyNext:
        def mirror_next(pace: Pace) -> RemoteSegment | None:
            name = tiered.log.topic, tiered.log.partition
            return tiered.mirror_next(pace, self._parts.logs.cleaner_offsets.clean_part(name))

        return mirror_next

    async def _drop(self, partition: Partition, tiered: TieredLog) -> None:
        log, parts = partition.log, self._parts
        limits = local_limits_of(log.config, is_held=parts.clock_watch.look())
        if parts.space.is_scarce:
            sizes = [each.size_bytes for each in log.snapshot.local_segments]
            limits = rounded_down(limits, sizes)
        now_ms = parts.clock.now_ms()
        is_rewritten = parts.logs.is_rewritten(log)
        droppable = partial(tiered.leaving.droppable, limits, now_ms, is_rewritten=is_rewritten)
        while (below := await parts.disk.run(_when_known, log, droppable)) is None:
            pass
        if tiered.leaving.is_at_rest:
            return
        if tiered.leaving.has_any:
            await parts.tier.copies.run(tiered.fence)
            await self._named(tiered)
            if not is_rewritten:
                await parts.disk.run(tiered.leaving.vouch, below)
        while leaving := await in_turn(partition, partial(tiered.leave, below)):
            parts.logs.bury_copied(log, leaving)
            parts.tier.tally.dropped(len(leaving), sum(each.size_bytes for each in leaving))
            event(
                "local_segments_removed",
                log=partition,
                segments=len(leaving),
                local_start_offset=log.snapshot.local_start_offset,
            )

    async def _expire(self, partition: Partition, tiered: TieredLog) -> None:
        gone = await self._parts.tier.copies.run(tiered.expire)
        await self._named(tiered)
        rows = (*gone, *tiered.take_replaced())
        if rows:
            await in_turn(partition, tiered.show)  # nobody is sent there any longer
        self._removals.put(tiered, rows)

    def _failed(self, log: Log, error: Exception) -> None:
        is_final = isinstance(error, FINAL)
        if self._parts.tier.tally.failed(log, error, is_final=is_final):
            level = "error" if is_final else "warning"
            event("tier_failed", level, log=f"{log.topic}-{log.partition}", error=error)
        if self._parts.shared is not None and isinstance(error, DamagedSegment):
            log.fail(error)  # all that counts is elsewhere: its leader makes it again
