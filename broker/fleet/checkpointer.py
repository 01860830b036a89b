"""Checkpoints: one object a node takes the place of many small commits.

Rows and their bytes in the catalog are for moments; what lasts is one span a partition and epoch,
whose bytes are in the store. The bytes are read back from the local log.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from broker.fleet.catalog.rows import (
    Checkpoint,
    CommitId,
    CommittedSpan,
    OwnedShard,
    PartitionKey,
    Span,
)
from broker.fleet.committer import CommitStore, Committer, Identity, PendingCheckpoint
from broker.fleet.frame import Frame, PartitionBatches, make_frame
from broker.fleet.host import OwnedLog
from broker.fleet.pacing import FleetClock
from broker.fleet.times import FleetTimes

PART_BYTES = 64 * 1024 * 1024
"""Most bytes that one checkpoint has of one partition."""


class LogSpans(NamedTuple):
    """A log, and what is committed of it."""

    log: OwnedLog
    spans: list[CommittedSpan]


class CommittedSpans:
    """Committed spans of the logs of an incarnation, as the catalog has them."""

    def __init__(self) -> None:
        """There are no logs."""
        self.logs: dict[PartitionKey, LogSpans] = {}
        self.small_bytes = 0
        """Bytes committed since the last checkpoint."""

    def add(self, log: OwnedLog, spans: Sequence[CommittedSpan]) -> None:
        """A log was loaded."""
        self.logs[log.partition] = LogSpans(log, list(spans))

    def drop(self, log: OwnedLog) -> None:
        """A log is another's, or was deleted."""
        found = self.logs.get(log.partition)
        if found is not None and found.log is log:
            del self.logs[log.partition]

    def committed(self, log: OwnedLog, span: Span, commit_id: CommitId, key: str | None) -> None:
        """One span more counts."""
        found = self.logs.get(log.partition)
        if found is not None and found.log is log:
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
    begin: int
    end: int


class Checkpointer:
    """Makes the checkpoints of one incarnation."""

    def __init__(
        self,
        store: CommitStore,
        committer: Committer,
        spans: CommittedSpans,
        identity: Identity,
        times: FleetTimes,
    ) -> None:
        """Nothing is read."""
        self._store = store
        self._committer = committer
        self._spans = spans
        self._me, self._fleet_id = identity
        self._times = times
        self._made_at = 0.0

    async def when_due(self, clock: FleetClock) -> None:
        """One checkpoint, if enough time has passed or enough was committed. StoreError."""
        is_due = clock.monotonic() - self._made_at >= self._times.checkpoint
        if is_due or self._spans.small_bytes >= self._times.checkpoint_bytes:
            self._made_at = clock.monotonic()
            await self.make()

    async def make(self) -> bool:
        """One checkpoint; False when there is nothing for it, or what it was about has changed.

        StoreError: the commits stay as they are.
        """
        runs = list(self._runs())
        if not runs:
            return False
        frame = make_frame(self._fleet_id, CommitId(self._me, 0), map(_batches, runs))
        key = await self._store.put(CommitId(self._me, 0), frame.body)
        shards = sorted({each.log.shard for each in runs})
        covered = self._spans.small_bytes
        pending = PendingCheckpoint(lambda commit_id: self._order(commit_id, frame, shards, key))
        self._committer.put_checkpoint(pending)
        commit_id = await pending.done
        if commit_id is None:
            return False
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
        for log, spans in self._spans.logs.values():
            for epoch in sorted({each.span.epoch for each in spans}):
                same = [each for each in spans if each.span.epoch == epoch]
                chosen = list(_chosen(same))
                if chosen:
                    yield SpanRun(
                        log, epoch, chosen[0].span.base_offset, chosen[-1].span.end_offset
                    )


def _chosen(spans: Sequence[CommittedSpan]) -> Iterator[CommittedSpan]:
    """From the first one whose bytes are in a row, as many as there is room for."""
    inline = (number for number, each in enumerate(spans) if each.object_key is None)
    room = PART_BYTES
    for each in spans[next(inline, len(spans)) :]:
        room -= each.span.size_bytes
        if room < 0:
            return
        yield each


def _batches(run: SpanRun) -> PartitionBatches:
    batches = run.log.batches(run.begin, run.end, PART_BYTES)
    return PartitionBatches(run.log.partition, run.epoch, batches)


def _is_within(old: Span, span: Span) -> bool:
    return span.base_offset <= old.base_offset and old.last_offset <= span.last_offset
