"""A store for the objects of commits, in memory."""

import asyncio
from collections.abc import Sequence

from broker.fleet.catalog.rows import CommitId


class CommitsInMemory:
    """It takes so many seconds for each put."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self.objects: dict[str, bytes] = {}

    async def put(self, _: CommitId, body: bytes) -> str:
        await asyncio.sleep(self._seconds)
        key = f"wal/{len(self.objects)}"
        self.objects[key] = body
        return key

    async def get(self, key: str) -> bytes:
        return self.objects[key]

    async def remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.objects.pop(key, None)

    async def all(self) -> Sequence[tuple[str, int]]:
        return []
