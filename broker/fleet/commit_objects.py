"""Objects of commits in a store: each written once, under a name that was never used before."""

from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Protocol, TypeVar
from uuid import UUID

from broker.fleet.catalog.rows import CommitId
from broker.runtime.event_log import event
from storage.env import Rng
from storage.tier.port import ObjectStore, ObjectTooLarge, in_pieces

T = TypeVar("T")

FREE_AGAIN = 0.75
"""Of the room in the catalog: so much may be used, once it was full, when it is free again."""
MOST_BYTES = 2**31
"""Places in an object are numbers of 32 bits with a sign."""


class Requests(Protocol):
    """Threads that ask the store."""

    def run(self, work: Callable[..., T], *arguments: object) -> Awaitable[T]:
        """Result of `work`, or its error."""


class CommitObjects:
    """The `CommitStore` of an object store. Used from the event loop; requests run on a lane."""

    def __init__(self, store: ObjectStore, lane: Requests, rng: Rng) -> None:
        """`rng` makes names."""
        self._prefix = ""
        self._store = store
        self._lane = lane
        self._rng = rng

    def use(self, fleet_id: UUID) -> None:
        """Objects are those of this fleet from now on: no other one's are ever listed."""
        self._prefix = f"fleets/{fleet_id}/wal"

    async def put(self, commit_id: CommitId, body: bytes) -> str:
        """As the port has it."""
        (node_id, incarnation), number = commit_id
        name = self._rng.uuid().hex
        assert self._prefix, "of no fleet yet"
        key = f"{self._prefix}/{node_id}/{incarnation}/{number:020}-{name}"
        await self._lane.run(self._store.put_new, key, body)
        return key

    async def get(self, key: str) -> bytes:
        """As the port has it."""
        return await self._lane.run(self._get, key)

    def _get(self, key: str) -> bytes:
        """Checkpoints of earlier versions have as many bytes as came while the store was away."""
        try:
            return self._store.get(key)
        except ObjectTooLarge:
            return b"".join(in_pieces(self._store, key, 0, MOST_BYTES))

    async def all(self) -> Sequence[tuple[str, int]]:
        """As the port has it."""
        return await self._lane.run(self._all)

    def _all(self) -> list[tuple[str, int]]:
        return [(each.key, each.modified_ms) for each in self._store.list(f"{self._prefix}/")]

    async def remove(self, keys: Sequence[str]) -> None:
        """As the port has it."""
        await self._lane.run(self._store.delete, keys)


class StoreWatch:
    """While the store is away, commits go into the catalog's rows and do not wait for it; a
    checkpoint finds out when it is back.
    """

    def __init__(self) -> None:
        """It is there, until it fails."""
        self.is_away = False

    def failed(self, error: Exception) -> None:
        """The store refused an object, or did not answer in time."""
        if not self.is_away:
            why = str(error) or "no answer in time"
            event("fleet_store_away", "warning", error=why)
        self.is_away = True

    def answered(self) -> None:
        """The store has an object more."""
        self.is_away = False


class RowRoom:
    """Room in the catalog for committed bytes that have no other place.

    A checkpoint brings them to the store. While that takes none they grow, up to a limit: then
    records of clients are refused, so that the database of the whole fleet does not fill its disk.
    """

    def __init__(self, most_bytes: float, monotonic: Callable[[], float]) -> None:
        """Nothing is used. `most_bytes` may be infinite; `monotonic` gives seconds."""
        self._most_bytes = most_bytes
        self._monotonic = monotonic
        self.used_bytes = 0
        self.is_full = False
        self.free_since = -inf
        """Monotonic seconds at which it was free again."""

    def changed(self, by_bytes: int) -> None:
        """So many bytes more are in rows, or fewer."""
        self.used_bytes += by_bytes
        if self.is_full:
            if self.used_bytes <= self._most_bytes * FREE_AGAIN:
                self.is_full, self.free_since = False, self._monotonic()
                event("fleet_rows_free", "info", used_bytes=self.used_bytes)
        elif self.used_bytes >= self._most_bytes:
            self.is_full = True
            event("fleet_rows_full", "error", used_bytes=self.used_bytes)
