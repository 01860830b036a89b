"""Producer ids: each given out once, ever, in the life of a data directory.

Ids are reserved in blocks of 1000: the end of a block is durable before its first id goes out, so
a crash skips ids and never repeats one (Kafka's controller does the same). A client may write with
any id, and a directory may come from a Kafka: ids that were not given out here move nothing, but a
block of which any id is in use is passed over.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from broker.runtime.event_log import event
from broker.runtime.lanes import DiskLane
from storage.directory.producer_ids_file import FILE_NAME, first_unused, parse, render
from storage.env import Env

BLOCK_SIZE = 1000
Reserve = Callable[[int], Awaitable[int]]


class ProducerIds:
    """The source of producer ids. Used from the event loop only."""

    def __init__(
        self,
        env: Env,
        lane: DiskLane,
        ids_in_logs: Callable[[], Iterable[int]],
    ) -> None:
        """Knows nothing until `load`. `ids_in_logs` tells of all producers, from any thread."""
        self._env = env
        self._path = f"{lane.log_dir}/{FILE_NAME}"
        self._lane = lane
        self._ids_in_logs = ids_in_logs
        self.reserve: Reserve = partial(lane.run, self._reserve)
        """Gives the first id of a block that nobody ever gets again, at an id or behind it. In a
        fleet the catalog does. StorageError.
        """
        self._used_blocks: set[int] = set()
        self._next = 0
        self._end = 0
        self._reserving = asyncio.Lock()

    def load(self) -> None:
        """Reads where the last block ended; blocks.

        Without that, as in a directory that a Kafka wrote, ids begin far above those in the logs,
        which forget some; such as no Kafka has given out move nothing. Raises CorruptCheckpoint
        when the file cannot be trusted, NewerFormat when a later version wrote it.
        """
        stored = parse(self._path, self._read())
        end = first_unused(stored, self._ids_in_logs() if stored is None else ())
        if stored is not None and end < stored:
            event("producer_ids_healed", "warning", stored=stored, goes_on_at=end)
        self._next = self._end = _block_of(end + BLOCK_SIZE - 1) * BLOCK_SIZE

    def is_used(self, producer_id: int) -> None:
        """An id that is in use, as it is found elsewhere than in the logs."""
        self._used_blocks.add(_block_of(producer_id))

    async def allocate(self) -> int:
        """A new id. Raises StorageError when a new block cannot be made durable."""
        if self._next >= self._end:
            async with self._reserving:
                if self._next >= self._end:
                    self._next = await self.reserve(self._end)
                    self._end = self._next + BLOCK_SIZE
        allocated = self._next
        self._next += 1
        return allocated

    def _reserve(self, first: int) -> int:
        """On a lane: makes a block durable, the first one from `first` on that nobody uses."""
        used = {_block_of(each) for each in self._ids_in_logs()} | self._used_blocks
        block = _block_of(first)
        while block in used:
            block += 1
        self._write((block + 1) * BLOCK_SIZE)
        return block * BLOCK_SIZE

    def _read(self) -> str | None:
        return self._env.fs.read_text(self._path) if self._env.fs.exists(self._path) else None

    def _write(self, end: int) -> None:
        self._env.fs.write_atomically(self._path, render(end))


def _block_of(producer_id: int) -> int:
    return producer_id // BLOCK_SIZE
