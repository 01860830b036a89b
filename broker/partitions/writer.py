"""The write half of a partition: order of writes, threads, and the time of the answer.

Appends run inline on the loop unless validation means inflating much; then they run on a lane, and
every later write waits for its turn, so that the order of arrival is the order in the log. When its
turn comes it runs on the loop like any other: a producer that is never without a request under way
would else be on the lane for good, once one change there was before it. A batch
with times out of bounds may need a rewrite first (time.md 2). Its quarantined records are stored in
the quarantine, as durably as the producer asked, before the rest is stored here: a
crash in between, or a retry, repeats a record in the quarantine and loses none.
"""

from __future__ import annotations  # functions are made per request: cheap ones

from asyncio import Future
from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar

from broker.partitions.leadership import Leadership
from broker.partitions.partition_services import NOBODY, PartitionServices, PendingRewrite, Sender
from broker.partitions.waiting_append import (
    INLINE_REWRITE_BYTES,
    AppendSteps,
    AtOnce,
    WaitingAppend,
    on_loop,
    only_on_lane,
)
from broker.partitions.writer_gate import WriterGate
from broker.runtime.deferred import Deferred, hand_on
from broker.runtime.lanes import settle
from broker.runtime.unpacking import too_much_of_a_request
from broker.runtime.wire_error import wire_error
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import CODEC_MASK
from storage.errors import StorageError
from storage.log.log import Log
from storage.old_formats import up_conversion
from storage.segment.log_snapshot import AppendResult
from storage.validation.batch_rules import INLINE_COMPRESSED_BYTES as LEAST_LANE_BYTES
from storage.validation.checked_batch import CheckedBatch, MistimedBatch
from storage.validation.timestamp_policy import Origin, TooLarge, rewritten
from storage.validation.unpacking import TooMuchWork, Work

T = TypeVar("T")

ACKS_ALL = -1
CODEC_POSITION = 22  # low byte of the attributes

Outcome = AppendResult | Deferred[AppendResult]


class PartitionWriter:
    """Changes the log of one partition. Used from the event loop only."""

    __slots__ = (
        "_announced",
        "_announced_bytes",
        "_leadership",
        "_serving",
        "_stable",
        "_turns",
        "_waited_for",
        "awaits_quarantine",
        "log",
    )

    def __init__(self, log: Log, serving: PartitionServices, waited_for: Hashable) -> None:
        """Nothing is read or written. `waited_for` is what fetches wait for: the partition."""
        self.log = log
        self._waited_for = waited_for
        self.awaits_quarantine = False
        """A write here waits for one to a quarantine, and all later ones with it."""
        self._leadership: Leadership | None = None
        self._serving = serving
        self._turns = WriterGate()
        snapshot = log.snapshot
        self._announced = snapshot.high_watermark
        self._announced_bytes = snapshot.total_bytes
        """Of the log, when all of it was readable last."""
        self._stable = snapshot.last_stable_offset

    def led_by(self, leadership: Leadership) -> None:
        """In a fleet: batches are of this epoch from now on, or are refused if it is not here."""
        self._leadership = leadership
        if not leadership.is_here:
            self._serving.waiters.wake_all(self._waited_for)

    @property
    def is_writing(self) -> bool:
        """True when a write waits for its turn, or has it and is on a lane."""
        return bool(self._turns.waiting)

    def append(self, records: memoryview, acks: int, sender: Sender = NOBODY) -> Outcome:
        """Appends one batch; the result at once, or later when a disk or a lane must be waited for.

        Inline `records` are patched in place; those that must wait are copied first, so the caller
        may reuse its buffer when this returns. Raises (or fails with) `KafkaError`; nothing is
        stored then.
        """
        log, size, leadership = self.log, len(records), self._leadership
        if leadership is not None:
            self._led_epoch()
            leadership.check_room()
        if size > CODEC_POSITION and records[CODEC_POSITION] & CODEC_MASK:
            return self._append_packed(records, acks, sender)
        if size > LEAST_LANE_BYTES and log.needs_lane(records):
            return self._append_in_turn(records, acks, sender, only_on_lane)
        if self._turns.waiting:
            return self._append_in_turn(records, acks, sender, on_loop)
        try:
            epoch = log.leader_epoch if leadership is None else leadership.epoch
            result = log.append(records, acks_all=acks == ACKS_ALL, leader_epoch=epoch)
        except MistimedBatch as mistimed:
            return self._rewrite(mistimed, acks, sender)
        except StorageError as error:
            raise self._serving.refused.refusal(log, error) from error
        return self._appended(result, size)

    def _append_packed(self, records: memoryview, acks: int, sender: Sender) -> Outcome:
        """As `append`; how much it unpacks to decides where that is done."""
        budget, size = sender.budget, len(records)
        budget.admit(size)
        at_once = partial(self._serving.unpacking.at_once, size, budget)
        if self.log.needs_lane(records):
            return self._append_in_turn(records, acks, sender, only_on_lane)
        if self._turns.waiting:
            return self._append_in_turn(records, acks, sender, at_once)
        try:
            result = at_once(lambda work: self._append(records, acks, work))
        except TooMuchWork:
            return self._append_in_turn(records, acks, sender, only_on_lane)
        except MistimedBatch as mistimed:
            return self._rewrite(mistimed, acks, sender)
        return self._appended(result, size)

    def append_old(self, records: memoryview, acks: int, sender: Sender = NOBODY) -> Outcome:
        """As `append`, for a set of format 0 or 1: it is made into a batch first."""
        if self._leadership is not None:
            self._leadership.check_room()
        if self._turns.waiting or up_conversion.needs_lane(records):
            sender.budget.admit(len(records))
            return self._append_in_turn(records, acks, sender, only_on_lane, self._append_old)
        try:
            result = self._append_old(records, acks)
        except MistimedBatch as mistimed:
            return self._rewrite(mistimed, acks, sender)
        return self._appended(result, len(records))

    def append_own(self, batch: CheckedBatch, acks: int) -> Outcome:
        """Appends a batch that the broker made; else as `append`."""
        size = len(batch.records)
        if not self._turns.waiting:
            return self._appended(self._append_own(batch, acks), size)
        answer: Deferred[AppendResult] = Deferred()

        def begin() -> None:
            try:
                result = self._append_own(batch, acks)
            except Exception as error:  # noqa: BLE001 - whatever it is, the turn is over
                self._over(answer, size, None, error)
            else:
                self._over(answer, size, result, None)

        self._turns.take(begin, answer.fail)
        return answer

    def in_turn(self, work: Callable[[], T]) -> Deferred[T]:
        """Runs `work`, which may change the log, on a lane, after all writes before it."""
        deferred: Deferred[T] = Deferred()

        def over(future: Future[T]) -> None:
            self.became_durable()  # what was durable before it was over shows since
            self._turns.end()
            settle(deferred, future)

        self._turns.take(lambda: self._run(work, over), deferred.fail)
        return deferred

    def delete_records(self, before_offset: int) -> Deferred[int]:
        """As `Log.delete_records`, in its turn; who leads the partition later keeps to it.

        Fails with KafkaError.
        """
        answer: Deferred[int] = Deferred()

        def moved(start_offset: int | None, error: BaseException | None) -> None:
            if start_offset is None:
                answer.fail(error or AssertionError("no start, and no error"))
            else:
                self._serving.commit.start_moved(self.log, partial(kept, start_offset))

        def kept(start_offset: int, error: BaseException | None) -> None:
            if error is None:
                answer.resolve(start_offset)
            else:
                answer.fail(wire_error(error))

        self.in_turn(partial(self.log.delete_records, before_offset)).listen(moved)
        return answer

    def durable_up_to(self, offset: int) -> Deferred[None] | None:
        """Settled when all below an offset is durable, for what vouches for it; None when it is, or
        the topic leaves that to the system. Fails with KafkaError.
        """
        if self.log.config.horolog_durability == "os":
            return None
        return self.forced_up_to(offset)

    def forced_up_to(self, offset: int) -> Deferred[None] | None:
        """As `durable_up_to`, whatever the topic leaves to the system."""
        log = self.log
        if log.durable_offset >= offset:
            return None
        answer: Deferred[None] = Deferred()

        def synced(error: BaseException | None) -> None:
            if error is None:
                answer.resolve(None)
            else:
                answer.fail(wire_error(error))

        self._serving.commit.request(log, offset, synced)
        return answer

    def became_durable(self) -> None:
        """Wakes the fetches that wait here when the high watermark has moved.

        A lane may just have appended: the snapshot says how much came, whoever hears of it first.
        """
        snapshot = self.log.snapshot
        if snapshot.high_watermark == self._announced:
            return
        was_held_up = self._stable < self._announced
        ends = was_held_up and snapshot.last_stable_offset > self._stable
        self._announced = snapshot.high_watermark
        self._stable = snapshot.last_stable_offset
        unread_bytes = snapshot.total_bytes - self._announced_bytes
        if ends or not unread_bytes:  # a transaction, on which readers of committed records waited
            self._serving.waiters.wake_all(self._waited_for)
        else:
            self._serving.waiters.wake(self._waited_for, unread_bytes)
        if snapshot.high_watermark == snapshot.log_end_offset:
            self._announced_bytes = snapshot.total_bytes

    def went_offline(self) -> None:
        """The log takes no more writes: fetches that wait for data here look again."""
        self._serving.waiters.wake_all(self._waited_for)

    def went_away(self) -> None:
        """The partition is deleted: waiting fetches and producers are answered."""
        self._serving.waiters.wake_all(self._waited_for)
        self._serving.commit.forget(self.log)
        self._serving.quarantine.origin_went(self.log)

    # --- what may run on a lane ---

    def _led_epoch(self) -> int:
        """The epoch of a batch. NOT_LEADER_OR_FOLLOWER (6) while it is another's to append, or may
        be: a producer that waited here would not look for the leader.
        """
        leadership = self._leadership
        if leadership is None:
            return self.log.leader_epoch
        if not leadership.takes_writes:
            raise leadership.refusal(f"{self.log.topic}-{self.log.partition}")
        return leadership.epoch

    def _append(
        self, batch: memoryview | CheckedBatch, acks: int, work: Work | None = None
    ) -> AppendResult:
        log, is_all = self.log, acks == ACKS_ALL
        try:
            return log.append(batch, acks_all=is_all, leader_epoch=self._led_epoch(), work=work)
        except StorageError as error:
            raise self._serving.refused.refusal(log, error) from error

    def _append_old(self, records: memoryview, acks: int, work: Work | None = None) -> AppendResult:
        return self._append(up_conversion.as_batch(records, self.log.config, work), acks, work)

    def _append_own(self, batch: CheckedBatch, acks: int) -> AppendResult:
        log = self.log
        try:
            return log.append_own(batch, acks_all=acks == ACKS_ALL, leader_epoch=self._led_epoch())
        except StorageError as error:
            raise self._serving.refused.refusal(log, error) from error

    def _pending_rewrite(self, mistimed: MistimedBatch, origin: Origin) -> PendingRewrite:
        """Touches nothing of the log, and is long for a large batch."""
        try:
            return PendingRewrite(mistimed, rewritten(mistimed, origin, self._serving.scratch))
        except TooLarge as error:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from None

    # --- turns ---

    def _append_in_turn(
        self,
        records: memoryview,
        acks: int,
        sender: Sender,
        at_once: AtOnce,
        append: Callable[[memoryview, int, Work | None], AppendResult] | None = None,
    ) -> Deferred[AppendResult]:
        append = append or self._append
        serving, size = self._serving, len(records)
        answer: Deferred[AppendResult] = Deferred()
        origin = self._origin(sender)
        steps = AppendSteps(
            lambda batch, work: append(batch, acks, work),
            lambda mistimed: self._pending_rewrite(mistimed, origin),
            partial(self._ended, answer, acks, size),
        )
        waiting = WaitingAppend(records, steps, sender.budget, serving, at_once)

        def refused(error: Exception) -> None:
            waiting.released()
            answer.fail(error)

        self._turns.take(waiting.begin, refused)
        return answer

    def _rewrite(self, mistimed: MistimedBatch, acks: int, sender: Sender) -> Outcome:
        """For a batch that was found mistimed inline: nobody waits, so it takes the first turn."""
        answer: Deferred[AppendResult] = Deferred()
        origin = self._origin(sender)
        if len(mistimed.rewrite.payload) <= INLINE_REWRITE_BYTES:
            rewrite = self._pending_rewrite(mistimed, origin)
            self._turns.take(partial(self._set_aside, answer, acks, rewrite), answer.fail)
            if self._turns.waiting:
                mistimed.keep()
            return answer
        mistimed.keep()
        work = partial(self._pending_rewrite, mistimed, origin)

        def over(future: Future[PendingRewrite]) -> None:
            came: Deferred[PendingRewrite] = Deferred()
            settle(came, future)
            came.listen(partial(self._ended, answer, acks, 0))

        self._turns.take(lambda: self._run(work, over), answer.fail)
        return answer

    def _ended(
        self,
        answer: Deferred[AppendResult],
        acks: int,
        size_bytes: int,
        outcome: AppendResult | PendingRewrite | None,
        error: BaseException | None,
    ) -> None:
        """Passes the turn on, unless a rewritten batch is still to be stored."""
        if not isinstance(outcome, PendingRewrite):
            if isinstance(error, TooMuchWork):
                error = too_much_of_a_request(ErrorCode.MESSAGE_TOO_LARGE)
            self._over(answer, size_bytes, outcome, error)
            return
        try:
            self._set_aside(answer, acks, outcome)
        except Exception as fault:  # noqa: BLE001 - nothing was stored: the turn is over
            self._over(answer, size_bytes, None, fault)

    def _set_aside(
        self, answer: Deferred[AppendResult], acks: int, rewrite: PendingRewrite
    ) -> None:
        """First what goes to the quarantine; in its turn."""
        if rewrite.rewritten.aside is None:
            self._place(answer, acks, rewrite, None, None)
            return
        self.awaits_quarantine = True
        stored = self._serving.quarantine.store(self.log, rewrite, acks)
        stored.listen(partial(self._place, answer, acks, rewrite))

    def _place(
        self,
        answer: Deferred[AppendResult],
        acks: int,
        rewrite: PendingRewrite,
        _: object,
        error: BaseException | None,
    ) -> None:
        """Then the batch itself."""
        self.awaits_quarantine = False
        result, batch = None, rewrite.rewritten.batch
        if error is None:
            try:
                result = self._append(batch, acks)
            except Exception as refused:  # noqa: BLE001 - whatever it is, the turn is over
                error = refused
        for buffer in rewrite.rewritten.buffers:
            self._serving.scratch.give_back(buffer)
        self._over(answer, batch.header.size_bytes, result, error)

    def _over(
        self,
        answer: Deferred[AppendResult],
        size_bytes: int,
        result: AppendResult | None,
        error: BaseException | None,
    ) -> None:
        self._turns.end()
        self._answer(answer, size_bytes, result, error)

    def _answer(
        self,
        answer: Deferred[AppendResult],
        size_bytes: int,
        result: AppendResult | None,
        error: BaseException | None,
    ) -> None:
        if result is None:
            self.became_durable()
            answer.fail(error or AssertionError("an append ended without a result"))
            return
        try:
            outcome = self._appended(result, size_bytes)
        except Exception as fault:  # noqa: BLE001 - who sent the batch must not wait for ever
            answer.fail(fault)
            return
        if isinstance(outcome, Deferred):
            outcome.listen(partial(hand_on, answer))
        else:
            answer.resolve(outcome)

    # --- after the write ---

    def _appended(self, result: AppendResult, size_bytes: int) -> Outcome:
        """Tells the readers, and decides whether the answer waits for the disk."""
        self.became_durable()
        if result.waits_for_disk:
            return self._durable(result)
        if not result.duplicate:
            interval = self.log.config.horolog_durability != "os"
            if self._serving.commit.written(self.log, size_bytes, interval=interval):
                return self._durable(result)
        return result

    def _durable(self, result: AppendResult) -> Outcome:
        if self.log.durable_offset > result.last_offset:
            return result
        answer: Deferred[AppendResult] = Deferred()

        def synced(error: BaseException | None) -> None:
            if error is None:
                answer.resolve(result)
            else:
                answer.fail(wire_error(error))

        self._serving.commit.request(self.log, result.last_offset + 1, synced)
        return answer

    def _run(self, work: Callable[[], T], done: Callable[[Future[T]], None]) -> None:
        future = self._serving.lane.run(work)
        future.add_done_callback(done)

    def _origin(self, sender: Sender) -> Origin:
        log = self.log
        return Origin(log.topic, log.partition, sender.client_id, sender.client_host)
