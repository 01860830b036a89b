"""A `Log` plus the rules of serving it: what readers may see, what they may ask.

How it is written to has a module of its own. Nothing here knows how requests and responses look.
"""

from __future__ import annotations  # functions are made per request: cheap ones

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from broker.partitions.lane_reads import LaneReads
from broker.partitions.leadership import Leadership
from broker.partitions.partition_services import PartitionServices
from broker.partitions.writer import ACKS_ALL, PartitionWriter
from broker.runtime.deferred import Deferred
from broker.runtime.lanes import settle
from broker.runtime.unpacking import RequestBudget
from broker.runtime.wire_error import wire_error
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError
from storage.files.file_slice import FetchData
from storage.log.log import Log
from storage.producers.leader_epochs import EpochEnd, LeaderEpochs
from storage.search.search_clock import SearchClock
from storage.segment.log_snapshot import LogSnapshot, TimestampOffset
from storage.validation.unpacking import Work

__all__ = [
    "ACKS_ALL",
    "Partition",
    "PartitionServices",
    "described_epoch",
    "last_fetchable",
    "skipped_at_a_new_leader",
]

T = TypeVar("T")

UNKNOWN_EPOCH = -1


class Partition:
    """One partition as the handlers see it. Used from the event loop only."""

    __slots__ = ("_lanes", "_serving", "end_elsewhere", "leadership", "log", "writer")

    def __init__(self, log: Log, serving: PartitionServices) -> None:
        """Nothing is read or written."""
        self.log = log
        log.undelivered = partial(serving.kept.of, log)
        self.writer: PartitionWriter = PartitionWriter(log, serving, self)
        self.leadership: Leadership | None = None
        """None: this node leads it, as the only one."""
        self.end_elsewhere: int | None = None
        """High watermark that its leader, another node, has said lately."""
        self._serving = serving
        self._lanes = LaneReads(log, serving)

    def led_by(self, leadership: Leadership) -> None:
        """In a fleet, from now on. Fetches that wait here look again."""
        self.leadership, self.end_elsewhere = leadership, None
        self.writer.led_by(leadership)

    @property
    def leader_elsewhere(self) -> Leadership | None:
        """The leader, if that is not this node."""
        leadership = self.leadership
        return None if leadership is None or leadership.is_here else leadership

    @property
    def is_surely_led(self) -> bool:
        """False while another node may lead it already: what is here may be old then."""
        return self.leadership is None or self.leadership.lease.is_held

    def leader_or(self, node_id: int) -> int:
        """Id of the leader's node; `node_id`, which is this one's, without a fleet."""
        return node_id if self.leadership is None else self.leadership.node_id

    def check_leads(self) -> None:
        """NOT_LEADER_OR_FOLLOWER (6) while another node leads it, or nobody."""
        elsewhere = self.leader_elsewhere
        if elsewhere is not None:
            raise elsewhere.refusal(self)

    def check_surely_leads(self) -> None:
        """As `check_leads`, and while another node may lead it already."""
        self.check_leads()
        if not self.is_surely_led:
            assert self.leadership is not None
            raise self.leadership.refusal(self)

    @property
    def leader_epoch(self) -> int:
        """The leader's epoch. KAFKA_STORAGE_ERROR (56) as `epochs`."""
        if self.leadership is not None:
            return self.leadership.epoch
        try:
            return self.log.leader_epoch
        except StorageError as error:
            raise wire_error(error) from error

    @property
    def epochs(self) -> LeaderEpochs:
        """Leader epochs of its log. KAFKA_STORAGE_ERROR (56) while their file, which is read when
        it is first asked for, cannot be read.
        """
        try:
            return self.log.epochs
        except StorageError as error:
            raise wire_error(error) from error

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.log.topic

    @property
    def index(self) -> int:
        """The partition's number in its topic."""
        return self.log.partition

    def check_leader_epoch(self, requested: int) -> None:
        """Refuses a client that knows an older (74) or a newer (75) epoch than ours, then one that
        should ask another node (6). Raises KafkaError. -1 is a client that knows none.
        """
        current = self.leader_epoch
        if requested in {UNKNOWN_EPOCH, current}:
            self.check_leads()
            return
        if requested < current:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, f"The epoch is {current} by now")
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"The epoch is still {current}")

    @property
    def earliest_epoch(self) -> int:
        """The epoch at the log start; -1 when that is no longer known (semantics.md 5.2)."""
        epochs = self.epochs
        if epochs.earliest is None:
            return self.leader_epoch
        epoch = epochs.epoch_at(self.log.snapshot.log_start_offset)
        return -1 if epoch is None else epoch

    def epoch_end_offset(self, epoch: int) -> EpochEnd:
        """End of `epoch`; the present one, even if it wrote nothing yet, ends at the end.

        One that ended before the log start ends there (semantics.md 9.2); in a log that never had
        a record, each before the present one ends at the end.
        """
        snapshot = self.log.snapshot
        if epoch == self.leader_epoch or self._is_before_all(epoch):
            return EpochEnd(epoch, snapshot.log_end_offset)
        found = self.epochs.end_offset_of(epoch, snapshot.log_end_offset)
        if 0 <= found.end_offset <= snapshot.log_start_offset:
            return EpochEnd(epoch, snapshot.log_start_offset)
        return found

    def _is_before_all(self, epoch: int) -> bool:
        is_known = epoch != UNKNOWN_EPOCH
        return is_known and self.epochs.earliest is None and epoch < self.leader_epoch

    def __repr__(self) -> str:
        """As the directory is called: topic-index."""
        return f"{self.topic}-{self.index}"

    def read(
        self, offset: int, max_bytes: int, *, committed: bool, whole_first: bool
    ) -> FetchData | None:
        """Whole batches from `offset` on that this isolation level may see; None when none are.

        Raises OFFSET_OUT_OF_RANGE (1) outside [log start, log end], and NOT_LEADER_OR_FOLLOWER (6)
        behind an end that another node may have moved. `whole_first` gives one batch even when it
        is larger than `max_bytes` (KIP-74).
        """
        snapshot = self.log.snapshot
        if not snapshot.log_start_offset <= offset <= snapshot.log_end_offset:
            if offset > snapshot.log_end_offset and not self.is_surely_led:
                assert self.leadership is not None
                raise self.leadership.refusal(self)
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
        self,
        timestamp_ms: int,
        end: int,
        *,
        at_once: bool = True,
        budget: RequestBudget | None = None,
        clock: SearchClock | None = None,
    ) -> TimestampOffset | Deferred[TimestampOffset | None] | None:
        """The first offset below `end` whose time is at least `timestamp_ms`.

        By the topic's clock unless another one is named.
        A search that has to touch the disk, or takes long, or need not be `at_once`, runs on a lane
        and comes later. TooMuchWork when it has to unpack more than `budget` has left.
        """
        first = self.log.search.first_at_or_after

        def search(may_wait: bool, may_ask: bool, work: Work) -> TimestampOffset | None:
            return first(
                timestamp_ms, below=end, clock=clock, may_wait=may_wait, may_ask=may_ask, work=work
            )

        return self._lanes.search(search, budget or RequestBudget(), at_once=at_once)

    def find_max_timestamp(
        self, end: int, *, at_once: bool = True, budget: RequestBudget | None = None
    ) -> TimestampOffset | Deferred[TimestampOffset | None] | None:
        """The first record with the largest record time in the log, whatever the clock.

        None when that one is not below `end`, as in Kafka.
        """
        first = self.log.search.first_with_largest

        def search(may_wait: bool, may_ask: bool, work: Work) -> TimestampOffset | None:
            found = first(may_wait=may_wait, may_ask=may_ask, work=work)
            return None if found is None or found.offset >= end else found

        return self._lanes.search(search, budget or RequestBudget(), at_once=at_once)

    def find_segment_starts(
        self, timestamp_ms: int, max_count: int, now_ms: int
    ) -> Deferred[list[int]]:
        """Offsets by the times of files, the latest first (semantics.md 5.5)."""
        starts = self.log.search.segment_starts
        return self.on_lane(lambda: starts(timestamp_ms, max_count, now_ms))

    def on_lane(self, work: Callable[[], T], at: int | None = None) -> Deferred[T]:
        """Runs `work`, which reads only, on a lane; it takes no turn.

        `at`: the least offset of the log that it reads. None: what it reads is here already.
        """
        return self._lanes.run(work, at)

    def on_lane_of_all(self, work: Callable[[], T]) -> Deferred[T]:
        """As `on_lane`, for what also reads other partitions: the tier's store may have them."""
        return self._lanes.run_anywhere(work)

    def on_unpacking_lane(
        self, work: Callable[[Work], T], budget: RequestBudget | None = None, at: int | None = None
    ) -> Deferred[T]:
        """As `on_lane`, for what unpacks; TooMuchWork when that is more than `budget` has left."""
        return self._lanes.unpack(work, budget or RequestBudget(), at)

    def alone_on_lane(self, work: Callable[[], T], budget: RequestBudget) -> Deferred[T]:
        """Runs on the disk's lane what may unpack much and does not tell beforehand.

        It asks the tier's store for nothing: what it reads was brought here.
        """
        answer: Deferred[T] = Deferred()
        self._serving.unpacking.alone(budget, lambda _: work(), lambda done: settle(answer, done))
        return answer


def described_epoch(partition: Partition) -> tuple[int, int]:
    """The leader's epoch, and NONE; -1, and the error code of the partition, when it cannot be
    read.
    """
    try:
        return partition.leader_epoch, ErrorCode.NONE
    except KafkaError as error:
        return UNKNOWN_EPOCH, error.code


def last_fetchable(snapshot: LogSnapshot, *, committed: bool) -> int:
    """The first offset that a consumer of this isolation level may not see."""
    return snapshot.last_stable_offset if committed else snapshot.high_watermark


def skipped_at_a_new_leader(error: KafkaError, partition: Partition, now: float) -> KafkaError:
    """NOT_LEADER_OR_FOLLOWER in place of an error about sequences, just after the leader changed.

    Batches before this one were refused on their way, and come again in their order when this one
    does. After OUT_OF_ORDER_SEQUENCE_NUMBER a producer of librdkafka would begin a new epoch, and
    send with it also what it does not know to be stored: that would be there twice.
    """
    leadership = partition.leadership
    if error.code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER or leadership is None:
        return error
    if not leadership.is_new(now):
        return error
    place = f"{partition.topic}-{partition.index}"
    text = f"{place}: the leader has just changed, and batches before this one are missing"
    return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
