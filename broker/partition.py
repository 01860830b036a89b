"""A `Log` plus the rules of serving it: whose turn it is, what readers may see, who is told.

Appends run inline on the loop unless validation means inflating much; then they run on a lane, and
every later write to this partition waits for its turn, so that the order of arrival is the order
in the log. Nothing here knows how requests and responses look.
"""

from __future__ import annotations  # functions are made per request: cheap ones

from asyncio import Future
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from broker.commit import GroupCommit
from broker.deferred import Deferred
from broker.lanes import DiskLanes
from broker.waiters import FetchWaiters
from protocol.errors import ErrorCode, KafkaError
from storage import old_formats
from storage.errors import StorageError
from storage.file_slice import FetchData
from storage.file_times import offsets_before
from storage.leader_epochs import EpochEnd
from storage.look import NotInMemory
from storage.search_clock import SearchClock
from storage.log import Log
from storage.snapshot import AppendResult, LogSnapshot, TimestampOffset

T = TypeVar("T")

ACKS_ALL = -1


@dataclass(frozen=True, slots=True)
class Serving:
    """What the partitions of one log directory share."""

    log_dir: str
    lanes: DiskLanes
    commit: GroupCommit
    waiters: FetchWaiters


class Partition:
    """One partition as the handlers see it. Used from the event loop only."""

    __slots__ = ("_announced", "_serving", "_turns", "_unread_bytes", "log")

    def __init__(self, log: Log, serving: Serving) -> None:
        """Serves `log`; nothing is read or written."""
        self.log = log
        self._serving = serving
        self._turns: deque[tuple[Callable[[], object], Deferred[object]]] = deque()
        self._announced = log.snapshot.high_watermark
        self._unread_bytes = 0

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.log.topic

    @property
    def index(self) -> int:
        """The partition's number in its topic."""
        return self.log.partition

    def check_leader_epoch(self, requested: int) -> None:
        """A client that knows an older (74) or a newer (75) epoch than ours is told so."""
        current = self.log.leader_epoch
        if requested < 0 or requested == current:
            return
        if requested < current:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, f"The epoch is {current} by now")
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"The epoch is still {current}")

    @property
    def earliest_epoch(self) -> int:
        """The epoch at the log start; -1 when that is no longer known (semantics.md 5.2)."""
        earliest = self.log.epochs.earliest
        if earliest is None:
            return self.log.leader_epoch
        start = self.log.snapshot.log_start_offset
        return earliest.epoch if earliest.start_offset <= start else -1

    def epoch_end_offset(self, epoch: int) -> EpochEnd:
        """Where `epoch` ended; the present one, even if it wrote nothing yet, ends at the end."""
        if epoch == self.log.leader_epoch:
            return EpochEnd(epoch, self.log.snapshot.log_end_offset)
        return self.log.epoch_end_offset(epoch)

    def append(self, records: memoryview, acks: int) -> AppendResult | Deferred[AppendResult]:
        """Appends one batch; the result at once, or later when a disk or a lane must be waited for.

        Inline `records` are patched in place; those that must wait are copied first, so the caller
        may reuse its buffer when this returns. Raises (or fails with) `KafkaError`; nothing is
        stored then.
        """
        if self._turns or self.log.needs_lane(records):
            return self._append_in_turn(bytearray(records), acks, self._append)
        return self._appended(self._append(records, acks), len(records))

    def append_old(self, records: memoryview, acks: int) -> AppendResult | Deferred[AppendResult]:
        """As `append`, for a set of format 0 or 1: it is made into a batch first."""
        if self._turns or old_formats.needs_lane(records):
            return self._append_in_turn(bytearray(records), acks, self._append_old)
        return self._appended(self._append_old(records, acks), len(records))

    def in_turn(self, work: Callable[[], T]) -> Deferred[T]:
        """Runs `work`, which may change the log, on a lane, after all writes before it."""
        deferred: Deferred[T] = Deferred()
        self._turns.append((work, deferred))  # type: ignore[arg-type]
        if len(self._turns) == 1:
            self._begin_turn()
        return deferred

    def became_durable(self) -> None:
        """Wakes the fetches that wait here when the high watermark has moved."""
        snapshot = self.log.snapshot
        if snapshot.high_watermark == self._announced:
            return
        self._announced = snapshot.high_watermark
        self._serving.waiters.wake(self, self._unread_bytes)
        if snapshot.high_watermark == snapshot.log_end_offset:
            self._unread_bytes = 0

    def went_offline(self) -> None:
        """The log takes no more writes: whoever waits for data here looks again."""
        self._serving.waiters.wake_all(self)

    def went_away(self) -> None:
        """The partition is deleted: waiting fetches and producers are answered."""
        self._serving.waiters.wake_all(self)
        self._serving.commit.forget(self.log)

    def __repr__(self) -> str:
        """As the directory is called: topic-index."""
        return f"{self.topic}-{self.index}"

    def read(
        self, offset: int, max_bytes: int, *, committed: bool, whole_first: bool
    ) -> FetchData | None:
        """Whole batches from `offset` on that this isolation level may see; None when none are.

        Raises OFFSET_OUT_OF_RANGE (1) outside [log start, log end]. `whole_first` gives one batch
        even when it is larger than `max_bytes` (KIP-74).
        """
        snapshot = self.log.snapshot
        if not snapshot.log_start_offset <= offset <= snapshot.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Offset {offset} is outside of {snapshot.log_start_offset} to "
                f"{snapshot.log_end_offset} of {self.topic}-{self.index}",
            )
        end = last_fetchable(snapshot, committed=committed)
        if offset >= end or (max_bytes <= 0 and not whole_first):
            return None
        return self.log.read(offset, max_bytes, up_to=end, min_one_batch=whole_first)

    def find_timestamp(
        self, timestamp_ms: int, end: int
    ) -> TimestampOffset | Deferred[TimestampOffset | None] | None:
        """The first offset below `end` whose time is at least `timestamp_ms`, by the topic's clock.

        A search that has to touch the disk, or takes long, runs on a lane and comes later.
        """
        clock = SearchClock(self.log.config.horolog_search_clock)

        def search(may_wait: bool) -> TimestampOffset | None:
            return self.log.offset_for_timestamp(
                timestamp_ms, last_fetchable=end, clock=clock, may_wait=may_wait
            )

        return self._search(search)

    def find_max_timestamp(
        self,
    ) -> TimestampOffset | Deferred[TimestampOffset | None] | None:
        """The first record with the largest record time in the log, whatever the clock."""
        return self._search(lambda may_wait: self.log.max_timestamp_offset(may_wait=may_wait))

    def find_segment_starts(
        self, timestamp_ms: int, max_count: int, now_ms: int
    ) -> Deferred[list[int]]:
        """Offsets by the times of files, the latest first (semantics.md 5.5)."""
        log = self.log
        return self.on_lane(
            lambda: offsets_before(log.snapshot, log.files, timestamp_ms, max_count, now_ms)
        )

    def on_lane(self, work: Callable[[], T]) -> Deferred[T]:
        """Runs `work`, which reads only, on a lane; it takes no turn."""
        answer: Deferred[T] = Deferred()
        future = self._serving.lanes.run(self._serving.log_dir, work)
        future.add_done_callback(lambda done: _settle(answer, done))
        return answer

    def _search(
        self, search: Callable[[bool], TimestampOffset | None]
    ) -> TimestampOffset | Deferred[TimestampOffset | None] | None:
        """At once from memory, or on a lane: there a fault is met again, and told."""
        snapshot = self.log.snapshot
        if snapshot.log_start_offset == snapshot.log_end_offset:
            return None
        try:
            return search(False)
        except (NotInMemory, KafkaError):
            return self.on_lane(lambda: search(True))

    def _append(self, records: memoryview, acks: int) -> AppendResult:
        try:
            return self.log.append(
                records, acks_all=acks == ACKS_ALL, leader_epoch=self.log.leader_epoch
            )
        except StorageError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def _append_old(self, records: memoryview, acks: int) -> AppendResult:
        return self._append(old_formats.as_batch(records, self.log.config), acks)

    def _append_in_turn(
        self,
        records: bytearray,
        acks: int,
        append: Callable[[memoryview, int], AppendResult],
    ) -> Deferred[AppendResult]:
        answer: Deferred[AppendResult] = Deferred()

        def appended(result: AppendResult | None, error: BaseException | None) -> None:
            if result is None:
                answer.fail(error or AssertionError("an append ended without a result"))
                return
            outcome = self._appended(result, len(records))
            if isinstance(outcome, Deferred):
                outcome.listen(lambda value, fault: _pass_on(answer, value, fault))
            else:
                answer.resolve(outcome)

        self.in_turn(lambda: append(memoryview(records), acks)).listen(appended)
        return answer

    def _appended(
        self, result: AppendResult, size_bytes: int
    ) -> AppendResult | Deferred[AppendResult]:
        """After the write: tells the readers, and decides whether the answer waits for the disk."""
        if not result.duplicate:
            self._unread_bytes += size_bytes
        self.became_durable()
        if result.waits_for_disk:
            return self._durable(result)
        if not result.duplicate:
            interval = self.log.config.horolog_durability != "os"
            if self._serving.commit.written(self.log, size_bytes, interval=interval):
                return self._durable(result)
        return result

    def _durable(self, result: AppendResult) -> AppendResult | Deferred[AppendResult]:
        if self.log.durable_offset > result.last_offset:
            return result
        answer: Deferred[AppendResult] = Deferred()

        def synced(error: BaseException | None) -> None:
            if error is None:
                answer.resolve(result)
            else:
                answer.fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)))

        self._serving.commit.request(self.log, result.last_offset + 1, synced)
        return answer

    def _begin_turn(self) -> None:
        work, _ = self._turns[0]
        future = self._serving.lanes.run(self._serving.log_dir, work)
        future.add_done_callback(self._end_turn)

    def _end_turn(self, future: Future[object]) -> None:
        _, deferred = self._turns.popleft()
        if self._turns:
            self._begin_turn()
        _settle(deferred, future)


def last_fetchable(snapshot: LogSnapshot, *, committed: bool) -> int:
    """The first offset that a consumer of this isolation level may not see."""
    return snapshot.last_stable_offset if committed else snapshot.high_watermark


def _pass_on(answer: Deferred[T], value: T | None, error: BaseException | None) -> None:
    if error is not None:
        answer.fail(error)
    else:
        answer.resolve(value)  # type: ignore[arg-type]


def _settle(answer: Deferred[T], future: Future[T]) -> None:
    """What became of work on a lane. A sick disk is an expected outcome: it has a wire code."""
    if future.cancelled():
        answer.fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "The broker is stopping"))
        return
    error = future.exception()
    if error is None:
        answer.resolve(future.result())
    elif isinstance(error, StorageError):
        answer.fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)))
    else:
        answer.fail(error)
