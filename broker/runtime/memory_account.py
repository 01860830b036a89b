"""One account of the memory that strangers can make the broker hold, in shares by class.

Whoever keeps a client's bytes, or memory that grows with what clients sent, charges them here
before he takes them and releases them when they are gone:

    account.charge(MemoryClass.GROUPS, size_bytes)      # KafkaError when the share is full
    ...
    account.release(MemoryClass.GROUPS, size_bytes)     # exactly what was charged

`charge` is all or nothing and says no with the class's own code; the caller lets the error go to
the client. Who counts what he holds anyway lets the account ask him (`watch`), and asks `has_room`
before he takes more. A class that holds nothing is given room for anything once: a limit smaller
than one request must not stop all of them. Sizes are estimates of what the process holds, in bytes;
what a small object takes beside its bytes counts (`ENTRY_BYTES` is a fair guess of one in a table).
From any thread. A new class is a member of `MemoryClass` and a row of `_SHARES`; the parts of all
come to one. `/metrics` shows each: `horolog_memory_used_bytes`, `horolog_memory_limit_bytes`,
`horolog_memory_refusals_total`.
"""

from collections.abc import Callable
from enum import StrEnum
from threading import Lock
from typing import NamedTuple

from protocol.errors import ErrorCode, KafkaError

ENTRY_BYTES = 256
"""About what an object with a few fields, its key and its place in a table take."""


class MemoryClass(StrEnum):
    """Classes of memory, by use; the metric's label."""

    REQUESTS = "requests"
    """Requests of more than 128 KiB that are being received or handled."""
    ANSWERS = "answers"
    """Answers that clients have not read, and those being made."""
    LANES = "lanes"
    """Batches that wait for a thread, and what is unpacked there."""
    GROUPS = "groups"
    """Metadata and assignments of group members; records of share groups that wait for a time."""
    OFFSETS = "offsets"
    """Committed offsets and their metadata."""
    PRODUCERS = "producers"
    """State of producers in partitions."""
    SESSIONS = "sessions"
    """Fetch sessions: the partitions that clients follow, and their names."""
    CLEANER = "cleaner"
    """Compaction: its map of keys, and what it unpacks."""


class _Share(NamedTuple):
    part: float
    code: ErrorCode
    """Error code for a client whose bytes do not fit."""


_SHARES = {
    MemoryClass.REQUESTS: _Share(0.20, ErrorCode.KAFKA_STORAGE_ERROR),
    MemoryClass.ANSWERS: _Share(0.15, ErrorCode.MESSAGE_TOO_LARGE),
    MemoryClass.LANES: _Share(0.20, ErrorCode.KAFKA_STORAGE_ERROR),
    MemoryClass.GROUPS: _Share(0.10, ErrorCode.GROUP_MAX_SIZE_REACHED),
    MemoryClass.OFFSETS: _Share(0.10, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
    MemoryClass.PRODUCERS: _Share(0.05, ErrorCode.KAFKA_STORAGE_ERROR),
    MemoryClass.SESSIONS: _Share(0.05, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    MemoryClass.CLEANER: _Share(0.15, ErrorCode.KAFKA_STORAGE_ERROR),
}


class MemoryAccount:
    """Limit and use of each class. Any thread."""

    __slots__ = ("_lock", "_refusals", "_used", "_watched", "_watched_refusals", "limit_bytes")

    def __init__(self, limit_bytes: int) -> None:
        """`limit_bytes`: of all classes together; see `memory_limit`."""
        self.limit_bytes = limit_bytes
        self._lock = Lock()
        self._used = dict.fromkeys(MemoryClass, 0)
        self._refusals = dict.fromkeys(MemoryClass, 0)
        self._watched: dict[MemoryClass, tuple[Callable[[], int], ...]] = dict.fromkeys(
            MemoryClass, ()
        )
        self._watched_refusals: dict[MemoryClass, Callable[[], int]] = {}

    def share(self, kind: MemoryClass) -> int:
        """Limit of the class, in bytes."""
        return int(self.limit_bytes * _SHARES[kind].part)

    def used(self, kind: MemoryClass) -> int:
        """Use of the class, in bytes."""
        watched = self._watched[kind]
        return self._used[kind] + (sum(count() for count in watched) if watched else 0)

    def refusals(self, kind: MemoryClass) -> int:
        """Number of refusals of the class."""
        counted = self._watched_refusals.get(kind)
        return self._refusals[kind] + (counted() if counted is not None else 0)

    def has_room(self, kind: MemoryClass, size_bytes: int) -> bool:
        """True when `size_bytes` more fit into the class's share."""
        used = self.used(kind)
        return not used or used + size_bytes <= self.share(kind)

    def charge(self, kind: MemoryClass, size_bytes: int) -> None:
        """Take that much; KafkaError, and nothing is taken, when the share does not hold it."""
        with self._lock:
            if self.has_room(kind, size_bytes):
                self._used[kind] += size_bytes
                return
            self._refusals[kind] += 1
        raise self.refusal(kind, size_bytes)

    def release(self, kind: MemoryClass, size_bytes: int) -> None:
        """Give back what was charged."""
        with self._lock:
            self._used[kind] -= size_bytes
            assert self._used[kind] >= 0, f"more memory of {kind} was released than charged"

    def watch(self, kind: MemoryClass, used_bytes: Callable[[], int]) -> None:
        """Adds a count that its owner keeps himself to a class; called from any thread."""
        self._watched[kind] = (*self._watched[kind], used_bytes)

    def watch_refusals(self, kind: MemoryClass, refusals: Callable[[], int]) -> None:
        """Likewise of how often he has said no."""
        self._watched_refusals[kind] = refusals

    def refuse(self, kind: MemoryClass, size_bytes: int) -> KafkaError:
        """As `refusal`, and it is counted: for who has asked `has_room` himself."""
        with self._lock:
            self._refusals[kind] += 1
        return self.refusal(kind, size_bytes)

    def refusal(self, kind: MemoryClass, size_bytes: int) -> KafkaError:
        """The error for a client whose bytes do not fit."""
        return KafkaError(
            _SHARES[kind].code,
            f"The memory for {kind} is full: {self.used(kind)} of {self.share(kind)} bytes, and "
            f"{size_bytes} more are asked for (horolog.memory.max.bytes)",
        )
