"""An object store in a simulation, as a node reaches it: commits there, and segments."""

import asyncio
import random
from collections.abc import Callable, Sequence

from broker.fleet.catalog.rows import CommitId
from storage.tier.port import ObjectMissing, StoreError
from tests.support.fleet.faulty_catalog import Way, awake
from tests.support.tier.faulty_store import Fault, FaultyStore
from tests.support.tier.memory_store import MemoryStore

SEGMENT_FAULTS = (Fault.LOST_BEFORE, Fault.LOST_AFTER, Fault.THROTTLED)
FAULT_SHARE = 0.02


class SimObjects:
    """All objects."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.put_at: dict[str, int] = {}
        self.is_away = False
        self.made = 0


class SimStore:
    """The `CommitStore` of a node."""

    def __init__(self, objects: SimObjects, way: Way, dice: random.Random) -> None:
        self._objects = objects
        self._way = way
        self._dice = dice

    async def put(self, commit_id: CommitId, body: bytes) -> str:
        self._objects.made += 1
        key = f"wal/{commit_id.incarnation.node_id}/{self._objects.made:020}"
        await self._reach(key)
        self._objects.objects[key] = body
        self._objects.put_at[key] = round(asyncio.get_running_loop().time() * 1000)
        await self._reach(key)
        return key

    async def get(self, key: str) -> bytes:
        await self._reach(key)
        if key not in self._objects.objects:
            raise ObjectMissing(key, "get", "there is none")
        return self._objects.objects[key]

    async def all(self) -> Sequence[tuple[str, int]]:
        await self._reach("wal/")
        return [(key, self._objects.put_at[key]) for key in self._objects.objects]

    async def remove(self, keys: Sequence[str]) -> None:
        """Some may be gone when it fails."""
        for key in keys:
            await self._reach(key)
            self._objects.objects.pop(key, None)

    async def _reach(self, key: str) -> None:
        await awake(self._way)
        await asyncio.sleep(self._dice.expovariate(100))
        if self._objects.is_away or self._dice.random() < FAULT_SHARE:
            raise StoreError(key, "reach", "the store is away")


class SegmentStore:
    """Segments and manifests of all nodes."""

    def __init__(self, objects: SimObjects, dice: random.Random, now_ms: Callable[[], int]) -> None:
        """Empty. It is away when that of the commits is."""
        self.memory = MemoryStore(now_ms)
        self._objects = objects
        self._dice = dice

    def reached(self) -> FaultyStore:
        """The `ObjectStore` of a node."""
        return FaultyStore(self.memory, self._fault)

    def _fault(self, operation: str, key: str) -> Fault | None:
        if self._objects.is_away:
            return Fault.LOST_BEFORE
        return self._dice.choice(SEGMENT_FAULTS) if self._dice.random() < FAULT_SHARE else None
