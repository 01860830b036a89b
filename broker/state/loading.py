"""Loading of a coordinator's state after a start, and its error codes meanwhile.

Partition by partition, on a lane; clients of a partition that is not read yet receive an error code
and retry. A partition that cannot be read does not affect the others, nor does a group or a
transactional id that cannot be restored: both are counted and named, and readiness reports them.
What an object store did not give is asked for again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from broker.partitions.leadership import NOBODY
from broker.partitions.partition import Partition
from broker.runtime.event_log import event
from broker.state.reading import LeftOut
from broker.state.state_topic import StateTopic
from protocol.errors import ErrorCode, KafkaError
from storage.log.log import Log
from storage.tier.port import StoreError

if TYPE_CHECKING:
    from broker.runtime.lanes import DiskLane


class Found(Protocol):
    """State read from a partition."""

    @property
    def left_out(self) -> LeftOut:
        """Records of it that mean nothing to us."""


F = TypeVar("F", bound=Found)

NAMED = 5  # of the partitions that are not served
RETRY_SECONDS, RETRY_MOST_SECONDS = 1.0, 30.0
"""Waits for a store that failed: the first, and the longest."""
MOVES_SECONDS = 10.0
"""A member's heartbeat finds the new coordinator within that."""


class _Gain:
    """A partition that this node leads; another one each time, since others wrote between."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.is_read = False
        """Or being read."""


class StateLoading(Generic[F]):
    """The partitions of one topic that are not read yet. Used from the event loop."""

    unreadable_records: int
    """Records, groups and transactional ids that were left out."""

    def __init__(
        self,
        lane: "DiskLane",
        topic: StateTopic,
        read: Callable[[Log, int], F],
        restore: Callable[[F], None],
        *,
        on_failed: Callable[[Partition, Exception], None],
        on_unreadable: Callable[[Partition, LeftOut], None],
    ) -> None:
        """`read(log, chunk_bytes)` runs on a lane, all others on the loop."""
        self.unreadable_records = 0
        self._lane = lane
        self._topic = topic
        self._read = read
        self._restore = restore
        self._on_failed = on_failed
        self._on_unreadable = on_unreadable
        self._not_loaded: dict[int, ErrorCode] = {}
        self._here: dict[int, _Gain] | None = None
        """In a fleet: the partitions that this node leads."""
        self._left_at: dict[int, float] = {}
        self._monotonic: Callable[[], float] = float
        self._shared_at, self._node_id = 0.0, 0

    def check(self, owner: str) -> None:
        """Raises COORDINATOR_LOAD_IN_PROGRESS (14), COORDINATOR_NOT_AVAILABLE (15), or in a fleet
        NOT_COORDINATOR (16).
        """
        if self._not_loaded:
            code = self._not_loaded.get(self._topic.index_of(owner))
            if code is not None:
                raise KafkaError(code)
        if self._here is not None and self._topic.index_of(owner) not in self._here:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

    def has_read(self, index: int) -> bool:
        """True when all of a partition is in memory, in a fleet of one that is led here."""
        return index not in self._not_loaded and (self._here is None or index in self._here)

    def may_miss(self, index: int) -> bool:
        """True while a partition is read: what is written to it may be missed."""
        code = self._not_loaded.get(index)
        if self._here is not None:  # it is read once more, after a fault of the store
            return code is not None
        return code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    @property
    def is_under_way(self) -> bool:
        """True while something is still being read."""
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS in self._not_loaded.values()

    @property
    def found_all(self) -> bool:
        """True when all was read, without unreadable records."""
        return not self._not_loaded and not self.unreadable_records

    def restore_one(self, owner: str, restore: Callable[[], None]) -> bool:
        """Makes one group or transactional id of what was read; False if that is impossible."""
        try:
            restore()
        except Exception as error:  # noqa: BLE001 - whatever was stored, the others are served
            self.unreadable_records += 1
            event(
                "state_not_restored", "error", topic=self._topic.name, owner=owner,
                error=repr(error),
            )  # fmt: skip
            return False
        return True

    @property
    def fault(self) -> str | None:
        """The partitions that are not served, for the operator; None when all read ones are."""
        failed = [
            f"{self._topic.name}-{index}"
            for index, code in sorted(self._not_loaded.items())
            if code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        ]
        if not failed:
            return None
        names = ", ".join(failed[:NAMED]) + (", ..." if len(failed) > NAMED else "")
        return f"what {names} holds is not served: it could not be read, see the log"

    @property
    def note(self) -> str | None:
        """The records that were left out, for the operator."""
        count = self.unreadable_records
        return f"{count} of {self._topic.name} were left out, see the log" if count else None

    def begin(self) -> None:
        """Before clients are let in: partitions that have records are not served yet."""
        self._not_loaded = {
            partition.index: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            for partition in self._topic.partitions
            if partition.log.snapshot.log_start_offset < partition.log.snapshot.log_end_offset
        }

    async def run(self, chunk_bytes: int) -> None:
        """Reads what `begin` found, in pieces of about `chunk_bytes`."""
        async for _ in self.rounds(chunk_bytes):
            pass

    async def rounds(self, chunk_bytes: int) -> AsyncIterator[None]:
        """As `run`; yields whenever all that can be had for now is read."""
        wanted = [each for each in self._topic.partitions if each.index in self._not_loaded]
        for pause in _pauses():
            wanted = [each for each in wanted if not await self._load(each, chunk_bytes, _always)]
            yield
            if not wanted:
                return
            await asyncio.sleep(pause)

    # --- in a fleet ---

    def share(self, monotonic: Callable[[], float], node_id: int) -> None:
        """Only what is led here is served from now on: nothing yet."""
        self._not_loaded, self._here = {}, {}
        self._monotonic, self._node_id = monotonic, node_id
        self._shared_at = monotonic()

    def check_or_wait(self, owner: str) -> None:
        """As `check`; what is on its way from or to this node is as what is being read, and so is
        what another node may have changed already, unseen from here.

        For a request after which NOT_COORDINATOR has a consumer of librdkafka never ask again (its
        issue 5586), and ends the process of its admin client.
        """
        try:
            self.check(owner)
        except KafkaError as error:
            if error.code != ErrorCode.NOT_COORDINATOR or not self._is_moving(owner):
                raise
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) from None
        gain = None if self._here is None else self._here.get(self._topic.index_of(owner))
        if gain is not None and not gain.partition.is_surely_led:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def _is_moving(self, owner: str) -> bool:
        """Nobody leads it, or this node is about to, did lately, or its process before perhaps."""
        index, partitions = self._topic.index_of(owner), self._topic.partitions
        leader = partitions[index].leader_elsewhere if partitions else None
        left_at = self._left_at.get(index, self._shared_at)
        is_coming = leader is not None and leader.node_id in {self._node_id, NOBODY}
        return is_coming or self._monotonic() - left_at < MOVES_SECONDS

    def gain(self, partition: Partition) -> None:
        """This node leads a partition from now on; it is served when `load` has read it."""
        assert self._here is not None
        self._here[partition.index] = _Gain(partition)
        self._not_loaded[partition.index] = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    async def load(self, partition: Partition, chunk_bytes: int) -> None:
        """Reads a partition that was gained, unless it was lost since; once for each gain."""
        gain = self._gain_of(partition)
        if gain is not None and not gain.is_read:
            gain.is_read = True

            def is_wanted() -> bool:
                return self._gain_of(partition) is gain

            for pause in _pauses():
                if await self._load(partition, chunk_bytes, is_wanted):
                    return
                await asyncio.sleep(pause)
                if not is_wanted():
                    return

    def lose(self, partition: Partition) -> None:
        """Another node leads it: nothing of it is served here. What was read is not forgotten."""
        if self._here is not None and self._gain_of(partition) is not None:
            del self._here[partition.index]
            self._not_loaded.pop(partition.index, None)
            self._left_at[partition.index] = self._monotonic()

    def _gain_of(self, partition: Partition) -> _Gain | None:
        """The present gain of this very partition; None when it is led elsewhere."""
        gain = None if self._here is None else self._here.get(partition.index)
        return gain if gain is not None and gain.partition is partition else None

    async def _load(
        self, partition: Partition, chunk_bytes: int, is_wanted: Callable[[], bool]
    ) -> bool:
        """False when another attempt may succeed."""
        try:
            found = await self._lane.run(self._read, partition.log, chunk_bytes)
            if not is_wanted():
                return True
            self._restore(found)
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody may wait for ever
            if is_wanted():
                self._not_loaded[partition.index] = ErrorCode.COORDINATOR_NOT_AVAILABLE
            self._on_failed(partition, error)
            return not (is_wanted() and isinstance(error, StoreError))
        self._not_loaded.pop(partition.index, None)
        if found.left_out.count:
            self.unreadable_records += found.left_out.count
            self._on_unreadable(partition, found.left_out)
        return True


def _always() -> bool:
    """Without a fleet no partition goes elsewhere."""
    return True


def _pauses() -> Iterator[float]:
    pause = RETRY_SECONDS
    while True:
        yield pause
        pause = min(2 * pause, RETRY_MOST_SECONDS)
