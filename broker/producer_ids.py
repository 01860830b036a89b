"""Producer ids: each given out once, ever, in the life of a data directory.

Ids are reserved in blocks of 1000: the end of a block is durable before its first id goes out, so
a crash skips ids and never repeats one (Kafka's controller does the same).
"""

import asyncio
import json

from broker.lanes import DiskLanes
from storage.env import Env
from storage.errors import CorruptCheckpoint, NewerFormat

FILE_NAME = "horolog-producer-ids.json"
FORMAT = 1
BLOCK_SIZE = 1000


class ProducerIds:
    """The source of producer ids. Used from the event loop only."""

    def __init__(self, env: Env, log_dir: str, lanes: DiskLanes) -> None:
        """Knows nothing until `load`."""
        self._env = env
        self._log_dir = log_dir
        self._path = f"{log_dir}/{FILE_NAME}"
        self._lanes = lanes
        self._next = 0
        self._end = 0
        self._reserving = asyncio.Lock()

    def load(self, largest_seen: int) -> None:
        """Reads where the last block ended; blocks.

        `largest_seen` is the largest id in the logs (-1: none): ids begin above it even when the
        file is missing, as in a directory that a Kafka wrote. Raises CorruptCheckpoint when the
        file cannot be trusted, NewerFormat when a later version wrote it.
        """
        stored = _parse(self._path, self._read())
        self._next = self._end = max(stored, largest_seen + 1)

    def is_used(self, producer_id: int) -> None:
        """An id that was given out before, as it is found somewhere: later ones are larger."""
        if producer_id >= self._next:
            self._next = producer_id + 1

    async def allocate(self) -> int:
        """A new id. Raises StorageError when a new block cannot be made durable."""
        if self._next >= self._end:
            async with self._reserving:
                if self._next >= self._end:
                    end = self._next + BLOCK_SIZE
                    await self._lanes.run(self._log_dir, self._write, end)
                    self._end = end
        allocated = self._next
        self._next += 1
        return allocated

    def _read(self) -> str | None:
        return self._env.fs.read_text(self._path) if self._env.fs.exists(self._path) else None

    def _write(self, end: int) -> None:
        text = json.dumps({"format": FORMAT, "reserved_below": end}) + "\n"
        self._env.fs.write_atomically(self._path, text.encode())


def _parse(path: str, text: str | None) -> int:
    if text is None:
        return 0
    try:
        document = json.loads(text)
        known, end = document["format"] == FORMAT, int(document["reserved_below"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptCheckpoint(path, f"producer ids cannot be read: {error}") from error
    if not known:
        raise NewerFormat(path, f"has format {document['format']}, this version reads {FORMAT}")
    return end
