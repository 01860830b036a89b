"""After a start: a coordinator reads back what it remembers, and says meanwhile what it cannot say.

Partition by partition, on a lane; whoever belongs to one that was not read yet is told to come
again. One that cannot be read keeps nobody from the others.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from broker.partition import Partition
from broker.state_topic import StateTopic
from protocol.errors import ErrorCode, KafkaError
from storage.log import Log

if TYPE_CHECKING:
    from broker.app import Broker


class Found(Protocol):
    """What a partition says."""

    @property
    def unreadable(self) -> int:
        """Records of it that mean nothing to us."""


F = TypeVar("F", bound=Found)


class StateLoading(Generic[F]):
    """The partitions of one topic that are not read yet. Used from the event loop."""

    unreadable_records: int

    def __init__(
        self,
        broker: "Broker",
        topic: StateTopic,
        read: Callable[[Log, int], F],
        restore: Callable[[F], None],
        *,
        on_failed: Callable[[Partition, Exception], None],
        on_unreadable: Callable[[Partition, int], None],
    ) -> None:
        """`read(log, chunk_bytes)` runs on a lane, all others on the loop."""
        self.unreadable_records = 0
        self._broker = broker
        self._topic = topic
        self._read = read
        self._restore = restore
        self._on_failed = on_failed
        self._on_unreadable = on_unreadable
        self._not_loaded: dict[int, ErrorCode] = {}

    def check(self, owner: str) -> None:
        """Raises COORDINATOR_LOAD_IN_PROGRESS (14) or COORDINATOR_NOT_AVAILABLE (15)."""
        if self._not_loaded:
            code = self._not_loaded.get(self._topic.index_of(owner))
            if code is not None:
                raise KafkaError(code)

    @property
    def is_under_way(self) -> bool:
        """Whether something is still being read."""
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS in self._not_loaded.values()

    @property
    def found_all(self) -> bool:
        """Whether there was nothing that could not be read, and nothing is left to read."""
        return not self._not_loaded and not self.unreadable_records

    def begin(self) -> None:
        """Before clients are let in: partitions that have records are not served yet."""
        self._not_loaded = {
            partition.index: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            for partition in self._topic.partitions
            if partition.log.snapshot.log_start_offset < partition.log.snapshot.log_end_offset
        }

    async def run(self, chunk_bytes: int) -> None:
        """Reads what `begin` found, in pieces of about `chunk_bytes`."""
        broker = self._broker
        for partition in self._topic.partitions:
            if partition.index not in self._not_loaded:
                continue
            try:
                found = await broker.lanes.run(
                    broker.log_dir, self._read, partition.log, chunk_bytes
                )
            except Exception as error:  # noqa: BLE001 - whatever it is, nobody may wait for ever
                self._on_failed(partition, error)
                self._not_loaded[partition.index] = ErrorCode.COORDINATOR_NOT_AVAILABLE
                continue
            self._restore(found)
            del self._not_loaded[partition.index]
            if found.unreadable:
                self.unreadable_records += found.unreadable
                self._on_unreadable(partition, found.unreadable)
