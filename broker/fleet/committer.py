"""Commits of one incarnation: bytes of its logs count, and are answered, when the catalog has them.

One commit is under way at a time, and has what was appended while the one before was. Its number is
one more than the last one's: so the catalog sees that none is missing, and a late copy of one does
nothing. What it does not answer is sent again in the same words; the answers that mean that nothing
of it can ever count let the number be used again.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from broker.fleet.catalog.port import FleetCatalog
from broker.fleet.catalog.rows import (
    CatalogCommit,
    Checkpoint,
    CommitAnswer,
    CommitId,
    Incarnation,
    OwnedShard,
    PartitionKey,
    Span,
)
from broker.fleet.commit_objects import StoreWatch
from broker.fleet.frame import Frame, PartitionBatches, make_frame
from broker.fleet.host import OwnedLog
from broker.fleet.pacing import FleetClock, until_answered
from broker.fleet.tally import FleetTally
from broker.fleet.times import FleetTimes
from broker.runtime.callbacks import failed
from storage.tier.port import StoreError

Done = Callable[[BaseException | None], None]
T = TypeVar("T")

PUT_SECONDS = 5.0
"""Longest wait of a commit for the store; producers hear of a time-out after 15 s."""


class Aside(Protocol):
    """Threads for what takes long."""

    def run(self, work: Callable[[], T]) -> Awaitable[T]:
        """Result of `work`, or its error."""


class LifeEnded(Exception):  # noqa: N818 - what happened
    """The incarnation can commit nothing any more. The text says why."""


class NotCommitted(Exception):  # noqa: N818 - what happened
    """It is not known whether the bytes count; here they will not be answered."""


class CommitStore(Protocol):
    """Objects of commits. Every call: StoreError."""

    async def put(self, commit_id: CommitId, body: bytes) -> str:
        """Makes an object under a new name, which it returns."""

    async def get(self, key: str) -> bytes:
        """The whole object."""

    async def remove(self, keys: Sequence[str]) -> None:
        """Removes objects; those that are not there are no error."""

    async def all(self) -> Sequence[tuple[str, int]]:
        """Every object of a commit, and when it was put, by the store's clock (ms)."""


class LifeStanding(Protocol):
    """Answers of an incarnation to its committer."""

    async def renewed(self) -> None:
        """Returns after a write of the lease that began after the call. LifeEnded."""

    async def stale(self, shards: Sequence[OwnedShard]) -> bool:
        """Lets go of shards that are others' by now; False when none of these is. LifeEnded."""

    async def deleted(self, named: Sequence[PartitionKey]) -> bool:
        """Lets go of partitions that were deleted; False when all of these are here. LifeEnded."""


class FleetReach(NamedTuple):
    """Catalog, store and time of a node."""

    catalog: FleetCatalog
    store: CommitStore | None
    """None: all bytes go into rows."""
    clock: FleetClock
    times: FleetTimes
    aside: Aside
    """Does long work elsewhere than on the loop."""
    tally: FleetTally


class Identity(NamedTuple):
    """An incarnation, and its fleet."""

    me: Incarnation
    fleet_id: UUID


class PendingCheckpoint:
    """A checkpoint whose object is in the store, on its way into the catalog."""

    def __init__(self, order: Callable[[CommitId], Checkpoint]) -> None:
        """`order` makes it for the number that it gets."""
        self.order = order
        self.done: asyncio.Future[CommitId | None] = asyncio.get_running_loop().create_future()
        """The commit that it became; None: what it was about has changed."""


class Committer:
    """Commits of one incarnation. Used from one event loop."""

    def __init__(
        self,
        reach: FleetReach,
        identity: Identity,
        on_committed: Callable[[OwnedLog, Span, CommitId, str | None], None],
    ) -> None:
        """`on_committed(log, span, commit, object key)` hears of each span before its waiters."""
        self._catalog, self._store, self._clock, self._times, _, self._tally = reach
        self._me, self._fleet_id = identity
        self._on_committed = on_committed
        self._number = 1
        self._dirty: dict[OwnedLog, None] = {}
        self._waiting: dict[OwnedLog, deque[tuple[int, Done]]] = {}
        self._checkpoints: deque[PendingCheckpoint] = deque()
        self._sent: frozenset[OwnedLog] = frozenset()
        """Logs of the commit that is under way, also of those that were forgotten since."""
        self.store_watch = StoreWatch()
        self._wake = asyncio.Event()

    def request(self, log: OwnedLog, offset: int, done: Done) -> None:
        """Calls `done(None)` once all of `log` below `offset` is committed, or `done(error)`."""
        if log.durable_offset >= offset:
            done(None)
            return
        self._waiting.setdefault(log, deque()).append((offset, done))
        self.appended(log)

    def appended(self, log: OwnedLog) -> None:
        """There is more to commit."""
        self._dirty[log] = None
        self._wake.set()

    def forget(self, log: OwnedLog) -> None:
        """Nothing more of the log is committed; who waits is answered with NotCommitted."""
        self._dirty.pop(log, None)
        waiting = self._waiting.pop(log, ())
        for _, done in waiting:
            self._tell(done, NotCommitted("the partition has another owner"))

    def refuse_waiting(self) -> None:
        """Answers all that wait with NotCommitted; their bytes may be committed all the same."""
        for log in list(self._waiting):
            for _, done in self._waiting.pop(log):
                self._tell(done, NotCommitted("another node may own the partition by now"))

    def is_flushed(self, log: OwnedLog) -> bool:
        """True when nothing of the log waits for a commit, or is in the one that is under way."""
        return not (log in self._dirty or log in self._waiting or log in self._sent)

    def put_checkpoint(self, checkpoint: PendingCheckpoint) -> None:
        """It becomes one of the next commits."""
        self._checkpoints.append(checkpoint)
        self._wake.set()

    async def run(self, standing: LifeStanding) -> None:
        """Commits until the incarnation ends. LifeEnded."""
        while True:
            began = self._clock.monotonic()
            if self._checkpoints:
                await self._send_checkpoint(self._checkpoints.popleft(), standing)
            elif not await self._send_next(standing):
                self._wake.clear()
                await self._wake.wait()
                continue
            rest = began + self._times.flush - self._clock.monotonic()
            if rest > 0:
                await self._clock.sleep(rest)

    def end(self) -> None:
        """The incarnation has ended: all that waits is answered with NotCommitted."""
        for log in list(self._waiting):
            self.forget(log)
        for each in self._checkpoints:
            each.done.cancel()
        self._dirty.clear()

    async def _send_next(self, standing: LifeStanding) -> bool:
        """One commit; False when there is nothing to commit."""
        parts = list(self._gathered())
        if not parts:
            return False
        self._sent = frozenset(log for log, _ in parts)
        try:
            await self._send(parts, standing)
        finally:
            self._sent = frozenset()
        return True

    async def _send(
        self, parts: Sequence[tuple[OwnedLog, PartitionBatches]], standing: LifeStanding
    ) -> None:
        commit_id, began = CommitId(self._me, self._number), self._clock.monotonic()
        frame = make_frame(self._fleet_id, commit_id, (part for _, part in parts))
        key = await self._put(commit_id, frame)
        shards = sorted({log.shard for log, _ in parts})
        body = frame.body if key is None else None
        order = CatalogCommit(commit_id, frame.crc, shards, frame.spans, body, key)
        answer = await until_answered(lambda: self._catalog.commit(order), self._clock, self._times)
        self._tally.commits.observe(self._clock.monotonic() - began)
        if await self._counts(answer, order, standing):
            for (log, _), span in zip(parts, frame.spans, strict=True):
                self._committed(log, span, commit_id, key)

    def _gathered(self) -> Iterator[tuple[OwnedLog, PartitionBatches]]:
        """Parts of a commit: of each log all there is, within the limit of all. Those that come
        next begin with the logs for which there was no room. Who waits for one whose disk has
        failed waits until it is let go.
        """
        room = self._times.flush_bytes
        for log in list(self._dirty):
            if log.durable_offset >= log.end_offset or not log.takes_records:
                del self._dirty[log]
                continue
            if room <= 0:
                return
            self._dirty[log] = self._dirty.pop(log)
            batches = log.batches(log.durable_offset, log.end_offset, room)
            room -= sum(len(each.data) for each in batches)
            yield log, PartitionBatches(log.partition, log.shard.epoch, batches)

    async def _put(self, commit_id: CommitId, frame: Frame) -> str | None:
        """Its object; None: it goes into the row, being small, or because the store is away.

        An object that comes later all the same has a name that nobody knows: it is swept.
        """
        size, watch = len(frame.body), self.store_watch
        if self._store is not None and size > self._times.inline_bytes and not watch.is_away:
            try:
                async with asyncio.timeout(PUT_SECONDS):
                    key = await self._store.put(commit_id, frame.body)
            except (StoreError, TimeoutError) as error:
                watch.failed(error)
            else:
                self._tally.object_bytes += size
                return key
        self._tally.inline_bytes += size
        return None

    async def _send_checkpoint(self, checkpoint: PendingCheckpoint, standing: LifeStanding) -> None:
        order = checkpoint.order(CommitId(self._me, self._number))
        answer = await until_answered(
            lambda: self._catalog.checkpoint(order), self._clock, self._times
        )
        counts = await self._counts(answer, order, standing)
        if not checkpoint.done.cancelled():
            checkpoint.done.set_result(order.commit_id if counts else None)

    async def _counts(
        self, answer: CommitAnswer, order: CatalogCommit | Checkpoint, standing: LifeStanding
    ) -> bool:
        """True when the bytes count; False: they do not and never will, and others may. LifeEnded.

        A commit that was there already may be seen before the standbys have it; a write that comes
        after it is answered only when they do.
        """
        self._tally.answers[answer.value] += 1
        if answer is CommitAnswer.ALREADY:
            await standing.renewed()
        if answer.counts:
            self._number += 1
            return True
        if answer is CommitAnswer.STALE and await standing.stale(order.shards):
            return False
        named = [each.partition for each in order.spans]
        if answer is CommitAnswer.NO_PARTITION and await standing.deleted(named):
            return False
        raise LifeEnded(f"a commit was refused: {answer}")

    def _committed(self, log: OwnedLog, span: Span, commit_id: CommitId, key: str | None) -> None:
        self._tally.shard_bytes[log.shard.shard_id] += span.size_bytes
        log.mark_durable(span.end_offset)
        self._on_committed(log, span, commit_id, key)
        if log.durable_offset >= log.end_offset:
            self._dirty.pop(log, None)
        waiting = self._waiting.get(log)
        while waiting and waiting[0][0] <= span.end_offset:
            self._tell(waiting.popleft()[1], None)
        if not waiting:
            self._waiting.pop(log, None)

    def _tell(self, done: Done, error: BaseException | None) -> None:
        try:
            done(error)
        except Exception as fault:  # noqa: BLE001 - others wait, too
            failed("fleet_commit", fault)
