"""Checkpoints: one object a node takes the place of many small commits.

Rows and their bytes in the catalog are for moments; what lasts is one span a partition and epoch,
whose bytes are in the store. The bytes are read back from the local log, while they are there as
they were committed.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import compress
from typing import NamedTuple

from broker.fleet.bodies import BodyGone, CommittedBodies
from broker.fleet.catalog.rows import (
    Checkpoint,
    CommitId,
    CommittedSpan,
    OwnedShard,
    PartitionKey,
    PartitionRow,
    Span,
)
from broker.fleet.commit_objects import RowRoom
from broker.fleet.committer import Committer, FleetReach, Identity, PendingCheckpoint
from broker.fleet.frame import (
    ArrivedBatch,
    CorruptFrame,
    Frame,
    PartitionBatches,
    StoredBatch,
    make_frame,
)
from broker.fleet.host import OwnedLog
from broker.fleet.pacing import FleetClock
from broker.runtime.event_log import event
from broker.runtime.growing_wait import growing_wait
from protocol.records.batch import read_header
from storage.errors import StorageError
from storage.tier.port import ObjectMissing, StoreError

CHECKPOINT_BYTES = 64 * 1024 * 1024
"""Most bytes of one checkpoint: a take-over reads all of it, and a put has a limit of time."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0
"""After a checkpoint that the store did not take."""


class LogSpans(NamedTuple):
    """A log, and what is committed of it."""

    log: OwnedLog
    spans: list[CommittedSpan]
    start: list[int]
    """The log start in the rows, alone in a list."""


class CommittedSpans:
    """Committed spans of the logs of an incarnation, as the catalog has them."""

    def __init__(self, room: RowRoom) -> None:
        """There are no logs. `room` has their bytes that are in rows alone."""
        self.room = room
        self.logs: dict[PartitionKey, LogSpans] = {}
        self.small_bytes = 0
        """Bytes committed since the last checkpoint."""
        self.changing = asyncio.Lock()
        """Lock of whoever replaces or removes spans in the rows; none waits for the store in it."""
        self.unsure: set[tuple[PartitionKey, str]] = set()
        """Partitions of whose spans the rows may have fewer, and the change whose answer did not
        come: it is asked for again.
        """
        self._copied_ends: dict[PartitionKey, int] = {}
        """Partitions that had more to commit when a manifest with all their spans was named, and
        its end: if the commit under way is in the rows already, it alone is.
        """

    def add(self, log: OwnedLog, row: PartitionRow) -> None:
        """A log was loaded."""
        before = self.logs.get(log.partition)
        self._copied_ends.pop(log.partition, None)
        found = self.logs[log.partition] = LogSpans(log, list(row.spans), [row.log_start_offset])
        self.room.changed(_in_rows(found.spans) - _in_rows(() if before is None else before.spans))

    def start_of(self, log: OwnedLog) -> int | None:
        """Its start in the rows; None when it is no longer here: the rows may have any then."""
        found = self._of(log)
        return None if found is None else found.start[0]

    def trimmed(self, log: OwnedLog, start: int) -> None:
        """The rows have another start; spans wholly below are gone from them."""
        found = self._of(log)
        if found is not None:
            found.start[0] = max(found.start[0], start)
            self._keep(found, [each for each in found.spans if each.span.end_offset > start])

    def copied(self, log: OwnedLog, end_offset: int) -> None:
        """All below is in segments: spans of that are gone from the rows, but for the newest."""
        found = self._of(log)
        if found is not None:
            newest = found.spans[-1:]
            left = [each for each in found.spans[:-1] if each.span.end_offset > end_offset]
            self._keep(found, left + newest)
            is_last = all(each.span.end_offset <= end_offset for each in newest)
            if is_last and log.durable_offset < log.end_offset:
                self._copied_ends[log.partition] = end_offset

    def _keep(self, found: LogSpans, spans: list[CommittedSpan]) -> None:
        self.room.changed(_in_rows(spans) - _in_rows(found.spans))
        found.spans[:] = spans
        in_rows = (each.span.base_offset for each in spans if each.object_key is None)
        end = spans[-1].span.end_offset if spans else 0
        found.log.settled(next(in_rows, end))

    def _of(self, log: OwnedLog) -> LogSpans | None:
        found = self.logs.get(log.partition)
        return found if found is not None and found.log is log else None

    def drop(self, log: OwnedLog) -> None:
        """A log is another's, or was deleted."""
        if self._of(log) is not None:
            self.room.changed(-_in_rows(self.logs.pop(log.partition).spans))
            self.unsure = {each for each in self.unsure if each[0] != log.partition}
            self._copied_ends.pop(log.partition, None)

    def is_sure(self, partition: PartitionKey) -> bool:
        """False while the rows may have fewer spans than are known here."""
        is_known = all(each != partition for each, _ in self.unsure)
        return is_known and partition not in self._copied_ends

    def has_all(self, log: OwnedLog, spans: Sequence[CommittedSpan]) -> bool:
        """True when these are committed spans of the log still, in the rows too."""
        found = self._of(log)
        return (
            found is not None and self.is_sure(log.partition) and set(spans).issubset(found.spans)
        )

    def committed(self, log: OwnedLog, span: Span, commit_id: CommitId, key: str | None) -> None:
        """One span more counts."""
        found = self._of(log)
        if found is not None:
            copied_end = self._copied_ends.pop(log.partition, 0)
            if copied_end:  # whether or not the rows have the one before still
                left = [each for each in found.spans if each.span.end_offset > copied_end]
                self._keep(found, left)
            found.spans.append(CommittedSpan(span, commit_id, key))
            self.small_bytes += span.size_bytes
            if key is None:
                self.room.changed(span.size_bytes)

    def replaced(self, by: Sequence[Span], commit_id: CommitId, key: str) -> None:
        """A checkpoint counts."""
        for span in by:
            found = self.logs.get(span.partition)
            if found is None:
                continue
            kept = [each for each in found.spans if not _is_within(each.span, span)]
            self._keep(found, sorted([*kept, CommittedSpan(span, commit_id, key)]))
            self.turn_over(found.log)

    def turn_over(self, log: OwnedLog) -> None:
        """Others are next to be checkpointed."""
        if self._of(log) is not None:
            self.logs[log.partition] = self.logs.pop(log.partition)


class SpanRun(NamedTuple):
    """Spans of one log and one epoch that become one."""

    log: OwnedLog
    epoch: int
    spans: Sequence[CommittedSpan]


class Checkpointer:
    """Makes the checkpoints of one incarnation."""

    def __init__(
        self, reach: FleetReach, committer: Committer, spans: CommittedSpans, identity: Identity
    ) -> None:
        """Nothing is read. There is a store."""
        assert reach.store is not None
        self._store = reach.store
        self._bodies = CommittedBodies(reach.catalog, reach.store)
        self._committer = committer
        self._spans = spans
        self._me, self._fleet_id = identity
        self._times = reach.times
        self._aside = reach.aside
        self._tally = reach.tally
        self._made_at = self._rests_until = 0.0
        self._failures = 0
        self._store_watch = committer.store_watch

    async def when_due(self, clock: FleetClock) -> None:
        """One checkpoint, if enough time has passed or enough was committed. StoreError."""
        now = clock.monotonic()
        is_due = now - self._made_at >= self._times.checkpoint
        if now < self._rests_until or not (is_due or self._is_much):
            return
        self._made_at = now
        try:
            await self.make()
        except StoreError as error:
            self._failures += 1
            pause = growing_wait(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, self._failures)
            self._rests_until = clock.monotonic() + pause
            self._store_watch.failed(error)
            raise
        self._failures = 0

    @property
    def _is_much(self) -> bool:
        return self._spans.small_bytes >= self._times.checkpoint_bytes

    async def make(self) -> bool:
        """One checkpoint; False when there is nothing for it, or what it was about has changed.

        StoreError, CatalogError: the commits stay as they are.
        """
        covered = self._spans.small_bytes
        read = [(run, await self._read(run)) for run in list(self._runs())]
        runs = [run for run, part in read if part is not None]
        if not runs:
            return False
        parts = [part for _, part in read if part is not None]
        place = self._fleet_id, CommitId(self._me, 0)
        frame = await self._aside.run(lambda: make_frame(*place, parts))
        key = await self._store.put(CommitId(self._me, 0), frame.body)
        self._store_watch.answered()
        async with self._spans.changing:
            there = [self._spans.has_all(each.log, each.spans) for each in runs]
            if not any(there):
                return False  # nobody names the object: it goes with the orphans
            runs = list(compress(runs, there))
            frame = frame._replace(spans=tuple(compress(frame.spans, there)))
            commit_id = await self._committed_as(frame, runs, key)
        if commit_id is None:
            return False
        self._tally.checkpoints += 1
        self._tally.object_bytes += len(frame.body)
        self._spans.small_bytes -= min(covered, _size_of(runs)) if self._is_more else covered
        return True

    async def _committed_as(
        self, frame: Frame, runs: Sequence[SpanRun], key: str
    ) -> CommitId | None:
        shards = sorted({each.log.shard for each in runs})
        pending = PendingCheckpoint(lambda commit_id: self._order(commit_id, frame, shards, key))
        self._committer.put_checkpoint(pending)
        commit_id = await pending.done
        if commit_id is not None:
            self._spans.replaced(frame.spans, commit_id, key)
        return commit_id

    @property
    def _is_more(self) -> bool:
        """True when there was no room for some."""
        return next(self._runs(), None) is not None

    def _order(
        self, commit_id: CommitId, frame: Frame, shards: Sequence[OwnedShard], key: str
    ) -> Checkpoint:
        keep_ms = round(self._times.keep * 1000)
        return Checkpoint(commit_id, frame.crc, shards, frame.spans, (), key, keep_ms)

    def _runs(self) -> Iterator[SpanRun]:
        """Neighbours of one epoch of which one at least is small, as many as there is room for.

        A first one that is larger than all the room goes by itself: it would wait for ever.
        """
        room = CHECKPOINT_BYTES
        for log, spans, _ in self._spans.logs.values():
            if not self._spans.is_sure(log.partition):
                continue
            for epoch in sorted({each.span.epoch for each in spans}):
                same = [each for each in spans if each.span.epoch == epoch]
                chosen = list(_chosen(same, room))
                if chosen:
                    run = SpanRun(log, epoch, chosen)
                    room -= _size_of([run])
                    yield run

    async def _read(self, run: SpanRun) -> PartitionBatches | None:
        """Its batches. None where their bytes are nowhere: the commits stay as they are."""
        try:
            return await self._batches(run)
        except (BodyGone, CorruptFrame, ObjectMissing) as error:
            self._spans.turn_over(run.log)
            reason = f"{run.log.partition}: {type(error).__name__}: {error}"
            event("fleet_round_failed", "warning", error=f"not in the checkpoint: {reason}")
            return None

    async def _batches(self, run: SpanRun) -> PartitionBatches:
        """From the log; what retention or the cleaner took from it or has rewritten, or a failed
        disk may have lost, as it was committed: of two records the later one may have taken the
        earlier one away here, and the next leader has that one still.
        """
        begin, end = run.spans[0].span.base_offset, run.spans[-1].span.end_offset
        batches: Sequence[StoredBatch] = ()
        if run.log.takes_records:
            with suppress(StorageError):
                read = partial(run.log.batches, begin, end, CHECKPOINT_BYTES)
                batches = await self._aside.run(read)
        if not batches or batches[0].base_offset != begin or batches[-1].last_offset != end - 1:
            batches = [each for span in run.spans for each in await self._committed(span)]
        return PartitionBatches(run.log.partition, run.epoch, batches)

    async def _committed(self, span: CommittedSpan) -> Sequence[StoredBatch]:
        return [_stored(each) for each in await self._bodies.batches_of(span)]


def _in_rows(spans: Iterable[CommittedSpan]) -> int:
    """Bytes that the store does not have."""
    return sum(each.span.size_bytes for each in spans if each.object_key is None)


def _size_of(runs: Sequence[SpanRun]) -> int:
    return sum(each.span.size_bytes for run in runs for each in run.spans)


def _chosen(spans: Sequence[CommittedSpan], room: int) -> Iterator[CommittedSpan]:
    """From the first one whose bytes are in a row, as many as there is room for."""
    inline = (number for number, each in enumerate(spans) if each.object_key is None)
    for each in spans[next(inline, len(spans)) :]:
        is_first = room == CHECKPOINT_BYTES
        room -= each.span.size_bytes
        if room < 0 and not is_first:
            return
        yield each


def _stored(arrived: ArrivedBatch) -> StoredBatch:
    header = read_header(memoryview(arrived.data))
    return StoredBatch(header.base_offset, header.last_offset, header.max_timestamp, *arrived)


def _is_within(old: Span, span: Span) -> bool:
    return span.base_offset <= old.base_offset and old.last_offset <= span.last_offset
