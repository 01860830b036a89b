"""The share coordinator (KIP-932): state of share partitions, and its changes.

Requests 83-87 and this broker's own share partitions go through the same functions. A change is in
memory at once and answered when it is durable; one that could not be written is taken back. It
answers COORDINATOR_LOAD_IN_PROGRESS (14) for what is still being read after the start, and
COORDINATOR_NOT_AVAILABLE (15) for what cannot be read. Used from the event loop only.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from broker.runtime.deferred import Deferred, resolved
from broker.runtime.event_log import event
from broker.share.state.key import ShareKey
from broker.share.state.loading import RememberedShareStates, remembered
from broker.share.state.merge import merge
from broker.share.state.needed import NeededOffsets
from broker.share.state.records import (
    ShareUpdate,
    most_snapshot_bytes,
    snapshot_row,
    tombstone_row,
    update_row,
)
from broker.share.state.remembered import UNKNOWN, SharePartitionState
from broker.share.state.topic import share_state_topic
from broker.share.state.turn_writes import TurnWrites
from broker.share.state.unwritten import Apply, PendingChange, Remembered, Unwritten
from broker.share.states import StateBatch
from broker.state.loading import StateLoading
from broker.state.reading import LeftOut
from broker.state.state_topic import Row
from protocol.errors import ErrorCode, KafkaError
from protocol.wire import ZERO_UUID

if TYPE_CHECKING:
    from broker.partitions.partition import Partition
    from broker.state.services import StateServices

NOTHING = SharePartitionState(0, 0, 0, UNKNOWN, UNKNOWN, [], 0, 0)
"""Summary of a share partition of which nothing is remembered."""
NOT_WRITTEN = frozenset((ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.MESSAGE_TOO_LARGE))
"""Errors of the state topic after which the log has nothing of a change."""


class ShareChange(NamedTuple):
    """A change of a share partition. -1: without a check of that epoch, and the start stays."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    finished: int
    batches: Sequence[StateBatch]


class _SnapshotWrite(NamedTuple):
    """A snapshot that is not durable yet."""

    key: ShareKey
    place: int
    at_least: int
    """No lower offset than this."""
    is_first: bool


class ShareCoordinator:
    """All that share groups remember of records."""

    def __init__(self, services: "StateServices", loop: asyncio.AbstractEventLoop) -> None:
        """Knows nothing until `load`."""
        self._topics = services.topics
        self._is_shared = False
        self._clock = services.clock
        self._config = services.config
        self.states: dict[ShareKey, SharePartitionState] = {}
        self._unwritten = Unwritten(self.states)
        self.needed = NeededOffsets()
        self.topic = share_state_topic(services)
        self._writes = TurnWrites(loop, self.topic)
        self.loading: StateLoading[RememberedShareStates] = StateLoading(
            services.lane,
            self.topic,
            remembered,
            self._restore,
            on_failed=_not_loaded,
            on_unreadable=_unreadable,
        )

    # --- requests; each raises KafkaError, or fails with it, as Kafka's coordinator ---

    def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> Deferred[None]:
        """Begins a share partition, or begins it again; -1: its start is decided later.

        FENCED_STATE_EPOCH (124) for an older epoch than the one remembered.
        """
        self._check_named(key)
        before = self.states.get(key)
        if before is not None and UNKNOWN != state_epoch < before.state_epoch:
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)
        self._check_exists(key)
        if before is not None and self._is_late(before, state_epoch, start_offset):
            return resolved(None)
        now_ms = self._clock.now_ms()
        epoch = 0 if before is None else before.snapshot_epoch + 1
        finished = UNKNOWN if start_offset == UNKNOWN else 0
        state = SharePartitionState(
            epoch, state_epoch, 0, start_offset, finished, [], now_ms, now_ms,
            newest_leader=0 if before is None else before.fenced_below,
        )  # fmt: skip
        return self._put_snapshot(key, state, lambda _: state)

    def read(
        self, key: ShareKey, leader_epoch: int
    ) -> SharePartitionState | Deferred[SharePartitionState]:
        """Remembered state; the leader's epoch is remembered when it is new.

        INVALID_REQUEST (42) where there is none, FENCED_LEADER_EPOCH (74) for an older leader.
        """
        self._check_named(key)
        state = self._known(key, "Read")
        if state.fenced_below > leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        self._check_exists(key)
        if leader_epoch in {UNKNOWN, state.leader_epoch}:
            return state
        change = ShareChange(UNKNOWN, leader_epoch, state.start_offset, state.finished, ())
        read: Deferred[SharePartitionState] = Deferred()
        self._change(key, state, change, leader_epoch).listen(partial(_pass, read, state))
        return read

    def write(self, key: ShareKey, change: ShareChange) -> Deferred[None]:
        """Changes what is remembered.

        INVALID_REQUEST (42) where there is nothing; for old ones FENCED_LEADER_EPOCH (74) or
        FENCED_STATE_EPOCH (124).
        """
        self._check_named(key)
        state = self._known(key, "Write")
        if UNKNOWN != change.leader_epoch < state.fenced_below:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        if UNKNOWN != change.state_epoch < state.state_epoch:
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)
        self._check_exists(key)
        if self._is_shared and change.start_offset < state.start_offset:
            change = change._replace(start_offset=state.start_offset, finished=UNKNOWN)
        return self._change(key, state, change, state.leader_epoch)

    def delete(self, key: ShareKey) -> Deferred[None]:
        """Forgets a share partition; nothing where it is not known."""
        self._check_named(key)
        self._check_exists(key)
        return self._forget(key)

    def summary(self, key: ShareKey) -> SharePartitionState:
        """Remembered state; NOTHING where there is none."""
        self._check_named(key)
        self._check_exists(key)
        return self.states.get(key, NOTHING)

    def snapshot(self, key: ShareKey) -> Deferred[None]:
        """Stores all that is remembered of a share partition once more; nothing where it is not
        known. No record before that is needed for it.
        """
        state = self.states.get(key)
        if state is None:
            return resolved(None)
        now_ms = self._clock.now_ms()
        return self._put_snapshot(
            key,
            state.repeated(now_ms),
            lambda base: None if base is None else base.repeated(now_ms),
        )

    def is_current(self, key: ShareKey, state_epoch: int) -> bool:
        """False when the state was begun again, or forgotten, since it was read with this epoch."""
        state = self.states.get(key)
        return state is not None and state.state_epoch == state_epoch

    def ranges_of(self, key: ShareKey) -> int:
        """Number of ranges of offsets that are remembered of it."""
        state = self.states.get(key)
        return 0 if state is None else len(state.batches)

    def topics_deleted(self, topic_ids: Iterable[UUID]) -> None:
        """Forgets the share partitions of topics that are gone."""
        gone = set(topic_ids)
        for key in [each for each in self.states if each.topic_id in gone]:
            self._forget(key).listen(partial(_left_behind, key))

    def epoch_of(self, key: ShareKey, leader_epoch: int) -> int:
        """As `ShareStates` has it, of a broker alone."""
        state = self.states.get(key)
        return leader_epoch if state is None else max(leader_epoch, state.leader_epoch)

    # --- start ---

    def begin_load(self) -> None:
        """Before clients are let in: what partitions with records remember is not served yet."""
        self.loading.begin()

    async def load(self) -> None:
        """Reads what is remembered, partition by partition, on a lane."""
        await self.loading.run(self._config.broker_config.share_coordinator_load_buffer_size)

    # --- in a fleet ---

    def shared(self, monotonic: Callable[[], float], node_id: int) -> None:
        """Only what is led here is served from now on: nothing yet.

        Requests come from other nodes, and once more after an answer that was lost: a beginning
        that was made is not made again, and a start never goes back.
        """
        self._is_shared = True
        self.loading.share(monotonic, node_id)

    def leads(self, key: ShareKey) -> bool:
        """True for a share partition that this node remembers, in a fleet."""
        return self.loading.has_read(self.topic.index_of(key.owner))

    async def lead(self, partition: "Partition") -> None:
        """Of a partition that was gained: what it remembers is read, and then served."""
        size = self._config.broker_config.share_coordinator_load_buffer_size
        await self.loading.load(partition, size)

    def lead_no_more(self, partition: "Partition") -> None:
        """Another node has it: nothing of it is kept."""
        self.loading.lose(partition)
        self._drop(partition.index)

    def _drop(self, index: int) -> None:
        self._unwritten.forget(lambda key: self.topic.index_of(key.owner) == index)
        for key in [each for each in self.states if self.topic.index_of(each.owner) == index]:
            del self.states[key]

    def _is_late(self, state: SharePartitionState, state_epoch: int, start_offset: int) -> bool:
        """True for a beginning without a start that was made already."""
        is_same = start_offset == UNKNOWN and state_epoch == state.state_epoch
        return self._is_shared and is_same

    def _restore(self, found: RememberedShareStates) -> None:
        if self._is_shared:
            self._drop(found.index)
        stays = found.left_out.count > 0
        self.needed.loaded(found.index, found.snapshots, found.end_offset, stays=stays)
        self.states.update(found.states)
        known = self._topics.image.by_id
        self.topics_deleted({key.topic_id for key in found.states if key.topic_id not in known})

    # --- checks ---

    def _check_named(self, key: ShareKey) -> None:
        if key.topic_id == ZERO_UUID:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The topic id cannot be null.")
        if key.partition < 0:
            text = "The partition id cannot be a negative number."
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
        self.loading.check(key.owner)
        if self._is_shared:
            self._check_surely_led(key)

    def _check_surely_led(self, key: ShareKey) -> None:
        """NOT_COORDINATOR (16) while another node may remember more already."""
        partition = self.topic.partitions[self.topic.index_of(key.owner)]
        if not partition.is_surely_led:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"Another node may lead {partition}")

    def _check_exists(self, key: ShareKey) -> None:
        topic = self._topics.image.by_id.get(key.topic_id)
        if topic is None or key.partition >= len(topic.partitions):
            text = "This server does not host this topic-partition."
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)

    def _known(self, key: ShareKey, operation: str) -> SharePartitionState:
        state = self.states.get(key)
        if state is None:
            text = f"{operation} operation on uninitialized share partition not allowed."
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
        return state

    # --- changes ---

    def _change(
        self, key: ShareKey, before: SharePartitionState, change: ShareChange, leader_epoch: int
    ) -> Deferred[None]:
        batches = merge((), change.batches, change.start_offset)
        start, finished = change.start_offset, change.finished

        def changed(base: Remembered) -> Remembered:
            return None if base is None else base.changed(leader_epoch, start, finished, batches)

        state = before.changed(leader_epoch, start, finished, batches)
        if self._is_snapshot_due(key, before, state):
            now_ms = self._clock.now_ms()

            def as_snapshot(base: Remembered) -> Remembered:
                new = changed(base)
                return None if new is None else new.as_snapshot(now_ms)

            return self._put_snapshot(key, state.as_snapshot(now_ms), as_snapshot)
        update = ShareUpdate(before.snapshot_epoch, leader_epoch, start, finished, batches)
        return self._put(
            PendingChange(key, state, changed, is_whole=False), update_row(key, update)
        )

    def _is_snapshot_due(
        self, key: ShareKey, before: SharePartitionState, state: SharePartitionState
    ) -> bool:
        """False as long as a snapshot would be too large to be written: updates go on."""
        settings = self._config.broker_config
        if before.updates < settings.share_coordinator_snapshot_update_records_per_snapshot:
            return False
        return self._writes.fits(most_snapshot_bytes(key, state))

    def _put_snapshot(
        self, key: ShareKey, state: SharePartitionState, apply: Apply
    ) -> Deferred[None]:
        """Ends the need for what comes before it, once it is durable."""
        index = self.topic.index_of(key.owner)
        partitions = self.topic.partitions
        at_least = partitions[index].log.snapshot.log_end_offset if partitions else 0
        write = _SnapshotWrite(key, index, at_least, key not in self.states)
        if write.is_first:
            self.needed.begun(index, key, at_least)
        answer: Deferred[None] = Deferred()
        written = partial(self._snapshot_written, write, answer)
        change = PendingChange(key, state, apply, is_whole=True)
        self._put(change, snapshot_row(key, state)).listen(written)
        return answer

    def _snapshot_written(
        self,
        write: "_SnapshotWrite",
        answer: Deferred[None],
        _: None,
        error: BaseException | None,
    ) -> None:
        if error is None:
            self.needed.renewed(write.place, write.key, write.at_least)
            answer.resolve(None)
            return
        if write.is_first and write.key not in self.states:
            self.needed.forgotten(write.place, write.key)
        answer.fail(error)

    def _put(self, change: PendingChange, row: Row) -> Deferred[None]:
        self._unwritten.add(change)
        answer: Deferred[None] = Deferred()
        self._writes.add(change.key.owner, row).listen(partial(self._written, change, answer))
        return answer

    def _forget(self, key: ShareKey) -> Deferred[None]:
        if key not in self.states:
            return resolved(None)
        change = PendingChange(key, None, lambda _: None, is_whole=True)
        answer: Deferred[None] = Deferred()
        self._put(change, tombstone_row(key)).listen(partial(self._forgotten, key, answer))
        return answer

    def _forgotten(
        self, key: ShareKey, answer: Deferred[None], _: None, error: BaseException | None
    ) -> None:
        if error is not None:
            answer.fail(error)
            return
        if key not in self.states:
            self.needed.forgotten(self.topic.index_of(key.owner), key)
        answer.resolve(None)

    def _written(
        self, change: PendingChange, answer: Deferred[None], _: None, error: BaseException | None
    ) -> None:
        if error is None:
            self._unwritten.written(change)
            answer.resolve(None)
        else:
            self._unwritten.failed(change, may_count=not _is_refused(error))
            answer.fail(error)


def _is_refused(error: BaseException) -> bool:
    """True of a change that will never count; others may be on their way yet."""
    return isinstance(error, KafkaError) and error.code in NOT_WRITTEN


def _pass(
    read: Deferred[SharePartitionState],
    state: SharePartitionState,
    _: None,
    error: BaseException | None,
) -> None:
    if error is None:
        read.resolve(state)
    else:
        read.fail(error)


def _left_behind(key: ShareKey, _: None, error: BaseException | None) -> None:
    if error is not None:
        event("share_state_left_behind", "warning", share=key.owner, error=error)


def _not_loaded(partition: "Partition", error: Exception) -> None:
    event("share_states_not_loaded", "error", partition=partition, error=error)


def _unreadable(partition: "Partition", left_out: LeftOut) -> None:
    event(
        "share_records_unreadable", "warning",
        partition=partition, records=left_out.count, first="; ".join(left_out.named),
    )  # fmt: skip
