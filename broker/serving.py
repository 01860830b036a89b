"""What partitions share, and what they are told about a batch beside its bytes. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from broker.commit import GroupCommit
from broker.lanes import DiskLanes
from broker.memory_account import MemoryAccount
from broker.unpacking import RequestBudget, Unpacking
from broker.waiters import FetchWaiters
from storage.checked_batch import MistimedBatch
from storage.remedies import Remedied
from storage.scratch import Scratch

if TYPE_CHECKING:
    from broker.quarantine import Quarantine


class Sender(Protocol):
    """Who sent a batch, as far as anybody knows."""

    @property
    def client_id(self) -> str:
        """The name the client gives itself."""

    @property
    def client_host(self) -> str:
        """The address it connects from."""

    @property
    def budget(self) -> RequestBudget:
        """What its request may still unpack."""


@dataclass(frozen=True, slots=True)
class Nobody:
    """Who sent a batch when nobody knows."""

    client_id: str = ""
    client_host: str = ""

    @property
    def budget(self) -> RequestBudget:
        """A new one each time."""
        return RequestBudget()


NOBODY = Nobody()


@dataclass(frozen=True, slots=True)
class Serving:
    """What the partitions of one log directory share."""

    log_dir: str
    lanes: DiskLanes
    commit: GroupCommit
    waiters: FetchWaiters
    quarantine: Quarantine
    unpacking: Unpacking
    memory: MemoryAccount
    scratch: Scratch = field(default_factory=Scratch)


@dataclass(frozen=True, slots=True)
class InRemedy:
    """A mistimed batch, and what its remedy has made of it."""

    mistimed: MistimedBatch
    remedied: Remedied
