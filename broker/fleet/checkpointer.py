"""Checkpoints: one object a node takes the place of many small commits.

Rows and their bytes in the catalog are for moments; what lasts is one span a partition and epoch,
whose bytes are in the store. The bytes are read back from the local log.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from broker.fleet.bodies import CommittedBodies
from broker.fleet.catalog.rows import (
    Checkpoint,
    CommitId,
    CommittedSpan,
    OwnedShard,
    PartitionKey,
    PartitionRow,
    Span,
)
from broker.fleet.committer import Committer, FleetReach, Identity, PendingCheckpoint
from broker.fleet.frame import ArrivedBatch, Frame, PartitionBatches, StoredBatch, make_frame
from broker.fleet.host import OwnedLog
from broker.fleet.pacing import FleetClock
from protocol.records.batch import read_header
from storage.errors import StorageError

PART_BYTES = 64 * 1024 * 1024
"""Most bytes that one checkpoint has of one partition."""


class LogSpans(NamedTuple):
    """A log, and what is committed of it."""

    log: OwnedLog
    spans: list[CommittedSpan]
    start: list[int]
    """The log start in the rows, alone in a list."""


class CommittedSpans:
    """Committed spans of the logs of an incarnation, as the catalog has them."""

    def __init__(self) -> None:
        """There are no logs."""
        self.logs: dict[PartitionKey, LogSpans] = {}
        self.small_bytes = 0
        """Bytes committed since the last checkpoint."""
        self.changing = asyncio.Lock()
        """Lock of whoever replaces or removes spans in the rows."""

    def add(self, log: OwnedLog, row: PartitionRow) -> None:
        """A log was loaded."""
        self.logs[log.partition] = LogSpans(log, list(row.spans), [row.log_start_offset])

    def start_of(self, log: OwnedLog) -> int:
        """Its start in the rows; that of the log when it is no longer here."""
        found = self._of(log)
        return log.start_offset if found is None else found.start[0]

    def trimmed(self, log: OwnedLog, start: int) -> None:
        """The rows have another start; spans wholly below are gone from them."""
        found = self._of(log)
        if found is not None:
            found.start[0] = max(found.start[0], start)
            found.spans[:] = [each for each in found.spans if each.span.end_offset > start]

    def copied(self, log: OwnedLog, end_offset: int) -> None:
        """All below is in segments: spans of that are gone from the rows, but for the newest."""
        found = self._of(log)
        if found is not None:
            newest = found.spans[-1:]
            found.spans[:] = [
                each for each in found.spans[:-1] if each.span.end_offset > end_offset
            ] + newest

    def _of(self, log: OwnedLog) -> LogSpans | None:
        found = self.logs.get(log.partition)
        return found if found is not None and found.log is log else None

    def drop(self, log: OwnedLog) -> None:
        """A log is another's, or was deleted."""
        if self._of(log) is not None:
            del self.logs[log.partition]

    def committed(self, log: OwnedLog, span: Span, commit_id: CommitId, key: str | None) -> None:
        """One span more counts."""
        found = self._of(log)
        if found is not None:
            found.spans.append(CommittedSpan(span, commit_id, key))
            self.small_bytes += span.size_bytes

    def replaced(self, by: Sequence[Span], commit_id: CommitId, key: str) -> None:
        """A checkpoint counts."""
        for span in by:
            found = self.logs.get(span.partition)
            if found is None:
                continue
            kept = [each for each in found.spans if not _is_within(each.span, span)]
            found.spans[:] = sorted([*kept, CommittedSpan(span, commit_id, key)])


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
        self._made_at = 0.0

    async def when_due(self, clock: FleetClock) -> None:
        """One checkpoint, if enough time has passed or enough was committed. StoreError."""
        is_due = clock.monotonic() - self._made_at >= self._times.checkpoint
        if is_due or self._spans.small_bytes >= self._times.checkpoint_bytes:
            self._made_at = clock.monotonic()
            async with self._spans.changing:
                await self.make()

    async def make(self) -> bool:
        """One checkpoint; False when there is nothing for it, or what it was about has changed.

        Hold the spans' `changing`. StoreError, CatalogError: the commits stay as they are.
        """
        runs = list(self._runs())
        if not runs:
            return False
        parts = [await self._batches(run) for run in runs]
        place = self._fleet_id, CommitId(self._me, 0)
        frame = await self._aside.run(lambda: make_frame(*place, parts))
        key = await self._store.put(CommitId(self._me, 0), frame.body)
        shards = sorted({each.log.shard for each in runs})
        covered = self._spans.small_bytes
        pending = PendingCheckpoint(lambda commit_id: self._order(commit_id, frame, shards, key))
        self._committer.put_checkpoint(pending)
        commit_id = await pending.done
        if commit_id is None:
            return False
        self._tally.checkpoints += 1
        self._tally.object_bytes += len(frame.body)
        self._spans.replaced(frame.spans, commit_id, key)
        self._spans.small_bytes -= covered
        return True

    def _order(
        self, commit_id: CommitId, frame: Frame, shards: Sequence[OwnedShard], key: str
    ) -> Checkpoint:
        keep_ms = round(self._times.keep * 1000)
        return Checkpoint(commit_id, frame.crc, shards, frame.spans, (), key, keep_ms)

    def _runs(self) -> Iterator[SpanRun]:
        """Neighbours of one epoch of which one at least is small."""
        for log, spans, _ in self._spans.logs.values():
            for epoch in sorted({each.span.epoch for each in spans}):
                same = [each for each in spans if each.span.epoch == epoch]
                chosen = list(_chosen(same))
                if chosen:
                    yield SpanRun(log, epoch, chosen)

    async def _batches(self, run: SpanRun) -> PartitionBatches:
        """From the log; what retention or the cleaner took from it, as it was committed."""
        begin, end = run.spans[0].span.base_offset, run.spans[-1].span.end_offset
        try:
            batches = await self._aside.run(lambda: run.log.batches(begin, end, PART_BYTES))
        except StorageError:
            batches = []
        if not batches or batches[0].base_offset != begin or batches[-1].last_offset != end - 1:
            batches = [each for span in run.spans for each in await self._committed(span)]
        return PartitionBatches(run.log.partition, run.epoch, batches)

    async def _committed(self, span: CommittedSpan) -> Sequence[StoredBatch]:
        return [_stored(each) for each in await self._bodies.batches_of(span)]


def _chosen(spans: Sequence[CommittedSpan]) -> Iterator[CommittedSpan]:
    """From the first one whose bytes are in a row, as many as there is room for."""
    inline = (number for number, each in enumerate(spans) if each.object_key is None)
    room = PART_BYTES
    for each in spans[next(inline, len(spans)) :]:
        room -= each.span.size_bytes
        if room < 0:
            return
        yield each


def _stored(arrived: ArrivedBatch) -> StoredBatch:
    header = read_header(memoryview(arrived.data))
    return StoredBatch(header.base_offset, header.last_offset, header.max_timestamp, *arrived)


def _is_within(old: Span, span: Span) -> bool:
    return span.base_offset <= old.base_offset and old.last_offset <= span.last_offset
