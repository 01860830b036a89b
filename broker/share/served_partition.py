"""A share partition at work: loaded from the share coordinator, written through it.

Every change is in memory at once and stored behind; what a client is answered waits until it is
durable. Fetches that wait here are woken by whatever frees records.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from broker.fetching.damage import DamageMet
from broker.partitions.partition import Partition
from broker.runtime.deadlines import Deadline, Deadlines
from broker.runtime.deferred import Deferred, refused
from broker.runtime.event_log import event
from broker.runtime.gathering import all_of, both, chain
from broker.share.acknowledge import AcknowledgedPart
from broker.share.letters.dead_letters import DeadLetters
from broker.share.letters.jobs import LetterJobs
from broker.share.locks import Locks
from broker.share.partition import SharePartition
from broker.share.share_counts import ShareCounts
from broker.share.start_offsets import start_offset
from broker.share.state.coordinator import ShareChange
from broker.share.state.key import ShareKey
from broker.share.state.remembered import UNKNOWN, SharePartitionState
from broker.share.state.store import ShareStates
from broker.share.states import AcquisitionLock, LetterWrite, RetryWait, ShareRules, StateWrite
from broker.share.waits.due_times import DelayTerms, DueTimes
from broker.share.waits.intake import IntakeParts, ShareIntake
from config.resources.group import READ_COMMITTED, GroupConfig
from config.store import ConfigStore
from protocol.errors import ErrorCode, KafkaError
from storage.env import Clock

RETRY_MS = 100
"""Until the state is asked for again while the share coordinator is still loading."""
STILL_MS = 50
"""Until the time is asked for again by a clock that stands still; other waits go on then."""
_CODES = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""Codes for members, by codes of the share coordinator, and of a commit of the records in a fleet;
UNKNOWN_SERVER_ERROR for all others."""


class ShareParts(NamedTuple):
    """The services that share partitions work with."""

    states: ShareStates
    config: ConfigStore
    clock: Clock
    deadlines: Deadlines
    wake: Callable[[object], None]
    """Wakes the fetches that wait for a share partition."""
    counts: ShareCounts
    damage: DamageMet
    trusted_ms: Callable[[], int]
    """Wall time by which records are due."""
    may_grow: Callable[[], bool]
    """False while the memory for records that wait is full."""
    letters: DeadLetters


class ServedPartition:
    """One share partition. Used from the event loop only."""

    def __init__(self, key: ShareKey, partition: Partition, parts: ShareParts) -> None:
        """Nothing is known until `load`."""
        self.key = key
        self.partition = partition
        self.error: KafkaError | None = None
        """Set when it cannot be served: it is to be loaded again."""
        self.when_idle: Callable[[ServedPartition], None] | None = None
        """Called once nothing waits any more; set while nobody reads here."""
        self._parts = parts
        self._records: SharePartition | None = None
        self._read_settings: GroupConfig | None = None
        self._terms = DelayTerms()
        self._intake = ShareIntake(
            partition, IntakeParts(parts.trusted_ms, parts.damage, parts.may_grow), self._took
        )
        self._due = Deadline()
        self._due.callback = self.time_came
        self._looked_ms = 0
        self.next_look_ms: int | None = None
        """No record that waits is due before this time; None when none waits."""
        self._waiting = 0
        now_ms = parts.clock.now_ms
        self._locks = Locks(
            parts.deadlines, now_ms, self._lock_ms, self._lock_ended, self._wait_over
        )
        self._letters = LetterJobs(self, parts.letters, parts.deadlines, self._rests)
        self._retry = Deadline()
        self._retry.callback = self.load
        self._state_epoch = UNKNOWN
        self._led_since = self._leader_epoch = partition.leader_epoch
        self._is_left = False
        self._writing = 0
        """Number of changes that are being written."""

    @property
    def group(self) -> str:
        """Its group."""
        return self.key.group

    @property
    def settings(self) -> GroupConfig:
        """The settings of its group."""
        return self._parts.config.group_config(self.key.group)

    @property
    def records(self) -> SharePartition | None:
        """The records, by the settings and the log of this moment; None while it is loaded."""
        if self.error is not None:
            raise self.error
        records = self._records
        if records is not None:
            if self.settings is not self._read_settings:
                self._follow(records)
            lost = records.lost
            records.log_starts_at(self.partition.log.snapshot.log_start_offset)
            self._parts.counts.lost_waiting += records.lost - lost
            if records.delayed is not None:
                records.delayed.come_due(self._parts.trusted_ms(), records.rules)
        return records

    def take_in(self) -> None:
        """Takes in what the log has more, in a group with a delay. KafkaError, StorageError."""
        records = self._records
        if records is not None and records.delayed is not None:
            committed = self.settings.share_isolation_level == READ_COMMITTED
            try:
                self._intake.run(records, self._terms, committed=committed)
            finally:
                self._arm(records)

    @property
    def is_current(self) -> bool:
        """False when its state was begun again, or forgotten, or another node led it meanwhile: it
        is to be loaded again.
        """
        if self.error is not None:
            return False
        if self._led_since != self.partition.leader_epoch:
            return False
        if self._records is None:
            return True
        return self._parts.states.is_current(self.key, self._state_epoch)

    @property
    def is_waiting(self) -> bool:
        """True while records wait for their next delivery, or for their dead letters: to forget
        that would make them free. Also while a change is being written, which a new reader of the
        state would not find.
        """
        if self.error is not None or self._records is None:
            return False
        return self._records.is_waiting or len(self._letters) > 0 or self._writing > 0

    @property
    def in_memory(self) -> SharePartition | None:
        """The records as they are, for those who look; None while they are read."""
        return self._records

    @property
    def start(self) -> int | None:
        """The first offset that is not finished; None while that is read. From any thread."""
        return None if self._records is None else self._records.start

    @property
    def in_flight(self) -> int:
        """Records from the first unfinished one to the last that was given out."""
        return 0 if self._records is None else self._records.window.in_flight

    # --- what members do ---

    def acknowledge(self, member: str, segments: Sequence[AcknowledgedPart]) -> Deferred[None]:
        """Takes in what a member says of records; settled when it is durable. Raises KafkaError."""
        records = self.records
        if records is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        write = records.acknowledge(member, segments)
        for first, last, kind in segments:
            self._parts.counts.acknowledged[kind] += last - first + 1
        stored = self._store(write)
        lettered = self._letters.begin(records.letters)
        return both(stored, all_of(lettered), lambda *_: None) if lettered else stored

    def release(self, member: str) -> Deferred[None]:
        """Takes back all that a member holds, as its session ends."""
        records = None if self.error is not None else self._records
        write = None if records is None else records.release(member)
        self._begin_letters()
        self._parts.wake(self)
        return self._store(write)

    def leave(self) -> None:
        """Nobody reads here any more: locks end with it, and another leader may go on."""
        self._is_left = True
        self._retry.cancel()
        self._due.cancel()
        self._letters.cancel()
        self._intake.leave()
        self._count_waiting(0)

    def wake(self) -> None:
        """Fetches that wait here look again."""
        self._parts.wake(self)

    def _lock_ms(self) -> int:
        return self.settings.share_record_lock_duration_ms

    def _lock_ended(self, lock: AcquisitionLock) -> None:
        assert self._records is not None
        if self._is_left:
            return
        self._parts.counts.locks_ended += 1
        event("share_lock_ended", "debug", share=self.key.owner, member=lock.member)
        self._store(self._records.lock_ended(lock))
        self._begin_letters()
        self._parts.wake(self)

    def _wait_over(self, wait: RetryWait) -> None:
        assert self._records is not None
        self._records.wait_over(wait)
        self._rests()

    # --- dead letters ---

    def _begin_letters(self) -> None:
        if self._records is not None and self._records.letters:
            self._letters.begin(self._records.letters)

    def lettered(self, write: LetterWrite) -> Deferred[None]:
        """Stores the end of records whose letters are durable. Fails, and the records wait on."""
        assert self._records is not None
        self._records.lettered(write)
        return self._store(write)

    def _rests(self) -> None:
        """Some records wait no longer."""
        self._parts.wake(self)
        if self.when_idle is not None and not self.is_waiting:
            self.when_idle(self)

    # --- what comes at its time ---

    def _count_waiting(self, waiting: int) -> None:
        self._parts.counts.waiting += waiting - self._waiting
        self._waiting = waiting

    def _follow(self, records: SharePartition) -> None:
        """Follows the settings of the group, which have changed."""
        settings = self._read_settings = self.settings
        records.rules = _rules(settings)
        terms = DelayTerms(
            settings.horolog_share_delay,
            settings.horolog_share_delay_ms,
            settings.horolog_share_delay_max_ms,
        )
        if terms.is_on and terms != self._terms:
            records.delay(self._parts.trusted_ms())
        elif records.delayed is not None and not terms.is_on:
            records.no_delay()
            self._arm(records)
        self._terms = terms

    def _took(self, found: DueTimes | None) -> None:
        """A piece of the log was taken in; None: that is all for now."""
        records, counts = self._records, self._parts.counts
        if records is None:
            return
        if found is not None:
            counts.delays_bounded += found.bounded
            counts.delays_unusable += found.unusable
        if found is None or records.next_fetch() is not None:
            self._parts.wake(self)
        self._arm(records)

    def time_came(self) -> None:
        """Something may be due, or the clock was set: fetches that wait are woken if it is so."""
        records = self._records
        if records is None or records.delayed is None:
            return
        now_ms = self._parts.trusted_ms()
        records.delayed.come_due(now_ms, records.rules)
        if records.next_fetch() is not None:
            self._parts.wake(self)
        self._arm(records, STILL_MS if now_ms == self._looked_ms else 1)
        self._looked_ms = now_ms

    def _arm(self, records: SharePartition, least_ms: int = 1) -> None:
        delayed = records.delayed
        self._count_waiting(0 if delayed is None else delayed.waiting)
        next_ms = None if delayed is None else delayed.next_ms(records.rules)
        self.next_look_ms = next_ms
        if next_ms is None:
            self._due.cancel()
            return
        now_ms = self._parts.trusted_ms()
        self._parts.deadlines.set(self._due, max(next_ms - now_ms, least_ms))

    # --- what is stored ---

    def _store(self, write: StateWrite | None) -> Deferred[None]:
        answer: Deferred[None] = Deferred()
        if write is None:
            answer.resolve(None)
            return answer
        self._writing += 1
        self._write(write).listen(partial(self._stored, write, answer))
        return answer

    def _write(self, write: StateWrite) -> Deferred[None]:
        """Stores a change once the records that it speaks of are durable: else a power cut would
        leave the state of records that are gone, and new ones would come to have it.
        """
        log = self.partition.log
        last = max((each.last + 1 for each in write.batches), default=0)
        needed = min(max(last, write.start_offset), log.snapshot.log_end_offset)
        durable = self.partition.writer.durable_up_to(needed)
        if durable is None:
            return self._write_state(write)
        return chain(lambda: durable, lambda: self._write_state(write))

    def _write_state(self, write: StateWrite) -> Deferred[None]:
        change = ShareChange(
            self._state_epoch, self._leader_epoch, write.start_offset, write.finished, write.batches
        )
        try:
            return self._parts.states.write(self.key, change)
        except KafkaError as error:
            return refused(error)

    def _stored(
        self, write: StateWrite, answer: Deferred[None], _: None, error: BaseException | None
    ) -> None:
        assert self._records is not None
        self._writing -= 1
        if error is None:
            self._records.written(write)
            answer.resolve(None)
        else:
            self._records.failed(write)
            if not self._is_left:
                self._begin_letters()
            refusal = _for_members(error)
            if _ends(error, refusal):
                self.error = refusal
            answer.fail(refusal)
        self._rests()

    # --- the start ---

    def load(self) -> None:
        """Reads its state, and chooses where to begin if that was never done."""
        self._leader_epoch = self._parts.states.epoch_of(self.key, self._led_since)
        try:
            read = self._parts.states.read(self.key, self._leader_epoch)
        except KafkaError as error:
            self._read(None, error)
            return
        if isinstance(read, Deferred):
            read.listen(self._read)
        else:
            self._read(read, None)

    def _read(self, state: SharePartitionState | None, error: BaseException | None) -> None:
        if state is None:
            self._not_loaded(error)
            return
        self._state_epoch = state.state_epoch
        if state.start_offset == UNKNOWN:
            self._choose()
            return
        records = self._made(state.start_offset)
        try:
            records.restore(state.batches)
        except ValueError as fault:
            self._not_loaded(fault)
            return
        self._ready(records)

    def _choose(self) -> None:
        strategy = self.settings.share_auto_offset_reset
        try:
            chosen = start_offset(self.partition, strategy, self._parts.clock.now_ms())
        except Exception as error:  # noqa: BLE001 - what a log cannot answer is the answer
            self._not_loaded(error)
            return
        if isinstance(chosen, Deferred):
            chosen.listen(self._chosen)
        else:
            self._chosen(chosen, None)

    def _chosen(self, start: int | None, error: BaseException | None) -> None:
        """Stores the start, so that a restart does not choose another."""
        if start is None:
            self._not_loaded(error)
            return
        records = self._made(start)

        def stored(_: None, error: BaseException | None) -> None:
            if error is None:
                self._ready(records)
            else:
                self._not_loaded(error)

        self._write(records.starts()).listen(stored)

    def _made(self, start: int) -> SharePartition:
        records = SharePartition(start, self._locks, ShareRules())
        self._terms = DelayTerms()
        self._follow(records)
        return records

    def _ready(self, records: SharePartition) -> None:
        self._records = records
        self._parts.wake(self)

    def _not_loaded(self, error: BaseException | None) -> None:
        """Tries again while the share coordinator loads; else its members are answered so."""
        if isinstance(error, KafkaError) and error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self._parts.deadlines.set(self._retry, RETRY_MS)
            return
        event("share_partition_not_loaded", "warning", share=self.key.owner, error=error)
        self.error = _for_members(error)
        self._parts.wake(self)


def _rules(settings: GroupConfig) -> ShareRules:
    return ShareRules(
        settings.share_delivery_count_limit,
        settings.share_partition_max_record_locks,
        settings.horolog_share_retry_backoff_ms,
        settings.horolog_share_retry_backoff_max_ms,
        settings.horolog_share_delay_max_pending,
        bool(settings.errors_deadletterqueue_topic_name),
    )


def _ends(error: BaseException, refusal: KafkaError) -> bool:
    """True when what is in memory may differ from what is remembered. Of records that were not
    committed nothing is: they are left to this leader, or the partition goes to another.
    """
    if isinstance(error, KafkaError) and error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return False
    return refusal.code != ErrorCode.COORDINATOR_NOT_AVAILABLE


def _for_members(error: BaseException | None) -> KafkaError:
    if not isinstance(error, KafkaError):
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    code = _CODES.get(ErrorCode(error.code), ErrorCode.UNKNOWN_SERVER_ERROR)
    return KafkaError(code, error.message)
