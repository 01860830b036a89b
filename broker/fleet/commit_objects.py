"""Objects of commits in a store: each written once, under a name that was never used before."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar
from uuid import UUID

from broker.fleet.catalog.rows import CommitId
from storage.env import Rng
from storage.tier.port import ObjectStore

T = TypeVar("T")


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
        return await self._lane.run(self._store.get, key)

    async def all(self) -> Sequence[tuple[str, int]]:
        """As the port has it."""
        return await self._lane.run(self._all)

    def _all(self) -> list[tuple[str, int]]:
        return [(each.key, each.modified_ms) for each in self._store.list(f"{self._prefix}/")]

    async def remove(self, keys: Sequence[str]) -> None:
        """As the port has it."""
        await self._lane.run(self._store.delete, keys)
