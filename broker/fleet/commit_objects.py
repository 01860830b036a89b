"""Objects of commits in a store: each written once, under a name that was never used before."""

from collections.abc import Sequence

from broker.fleet.catalog.rows import CommitId
from broker.runtime.lanes import DiskLane
from storage.env import Rng
from storage.tier.port import ObjectStore

PREFIX = "wal"


class CommitObjects:
    """The `CommitStore` of an object store. Used from the event loop; requests run on a lane."""

    def __init__(self, store: ObjectStore, lane: DiskLane, rng: Rng) -> None:
        """`rng` makes names."""
        self._store = store
        self._lane = lane
        self._rng = rng

    async def put(self, commit_id: CommitId, body: bytes) -> str:
        """As the port has it."""
        (node_id, incarnation), number = commit_id
        name = self._rng.uuid().hex
        key = f"{PREFIX}/{node_id}/{incarnation}/{number:020}-{name}"
        await self._lane.run(self._store.put_new, key, body)
        return key

    async def get(self, key: str) -> bytes:
        """As the port has it."""
        return await self._lane.run(self._store.get, key)

    async def remove(self, keys: Sequence[str]) -> None:
        """As the port has it."""
        await self._lane.run(self._store.delete, keys)
