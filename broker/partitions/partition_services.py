"""Shared services of partitions, and facts about a batch beside its bytes. Values only."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from broker.partitions.commit import CommitPort
from broker.partitions.fetch_waiters import FetchWaiters
from broker.partitions.refused_writes import RefusedWrites
from broker.runtime.lanes import DiskLane
from broker.runtime.memory_account import MemoryAccount
from broker.runtime.principals import ANONYMOUS, Principal
from broker.runtime.unpacking import RequestBudget, Unpacking
from storage.validation.checked_batch import MistimedBatch
from storage.validation.scratch import Scratch
from storage.validation.timestamp_policy import Rewritten

if TYPE_CHECKING:
    from broker.runtime.deferred import Deferred
    from storage.log.log import Log
    from storage.retention.undelivered import Undelivered
    from storage.segment.log_snapshot import AppendResult


T = TypeVar("T")


class Sender(Protocol):
    """Sender of a batch, as far as known."""

    @property
    def client_id(self) -> str:
        """The name the client gives itself."""

    @property
    def client_host(self) -> str:
        """The address it connects from."""

    @property
    def principal(self) -> Principal:
        """Its user, as far as it had to say who it is."""

    @property
    def budget(self) -> RequestBudget:
        """Rest of what its request may unpack."""


@dataclass(frozen=True, slots=True)
class Nobody:
    """Sender of a batch when it is unknown."""

    client_id: str = ""
    client_host: str = ""
    principal: Principal = ANONYMOUS

    @property
    def budget(self) -> RequestBudget:
        """A new one each time."""
        return RequestBudget()


NOBODY = Nobody()


class QuarantineWriter(Protocol):
    """Stores the records of a batch that its topic does not keep."""

    def store(self, origin: Log, rewrite: PendingRewrite, acks: int) -> Deferred[AppendResult]:
        """Store the quarantined records of a batch for `origin`. Fails with KafkaError."""

    def origin_went(self, origin: Log) -> None:
        """The log is deleted: what waits for a quarantine to be made fails."""


class StoreSearches(Protocol):
    """Threads for searches that may ask the tier's store."""

    @property
    def search_seconds(self) -> float:
        """For how long one may take."""

    def run(self, work: Callable[[], T]) -> Future[T]:
        """Runs it there; the future has StoreError at once when too much waits already."""


class KeptForQueues:
    """Source of what queues keep in a log; nothing until it is set. From any thread."""

    def __init__(self) -> None:
        """No queue is known."""
        self.source: Callable[[Log], Sequence[Undelivered]] | None = None

    def of(self, log: Log) -> Sequence[Undelivered]:
        """Records of a log that retention leaves for queues."""
        return () if self.source is None else self.source(log)


@dataclass(frozen=True, slots=True)
class PartitionServices:
    """Services shared by the partitions of one log directory."""

    lane: DiskLane
    commit: CommitPort
    waiters: FetchWaiters
    quarantine: QuarantineWriter
    unpacking: Unpacking
    memory: MemoryAccount
    refused: RefusedWrites
    scratch: Scratch = field(default_factory=Scratch)
    kept: KeptForQueues = field(default_factory=KeptForQueues)
    away: StoreSearches | None = None
    """Searches of logs that go on in the tier's store."""


@dataclass(frozen=True, slots=True)
class PendingRewrite:
    """A mistimed batch, and its rewritten form."""

    mistimed: MistimedBatch
    rewritten: Rewritten
