"""Whether file bytes can be sent without waiting for the disk, and a lane that fetches them if not.

The kernel is asked (a read that refuses to wait) at a few points of a range: it reads ahead in
chunks larger than the distance between them. Where a file system cannot answer that question, bytes
count as cached: waiting now and then is better than a detour for every answer.
"""

import asyncio
from collections.abc import Callable

from broker.lanes import DiskLanes
from storage.env import File
from storage.errors import DiskError
from storage.file_slice import FileSlice

PROBE_STEP = 256 * 1024
WARM_BYTES = 2 * 1024 * 1024  # fetched by one visit to the lane
BLIND_AFTER = 3  # bytes that were just read and are said not to be there, so many times running


class PageCache:
    """Asks for all senders of a broker. Used from the event loop; `warm` works on a lane."""

    def __init__(self, lanes: DiskLanes, log_dir: str) -> None:
        """`log_dir` names the lane."""
        self._lanes = lanes
        self._log_dir = log_dir
        self._probe = memoryview(bytearray(1))
        self._wrong_answers = 0
        self.visits = 0

    def cached_up_to(self, part: FileSlice, limit: int) -> int:
        """How many bytes of `part` can be sent at once: 0, or up to `limit` (or its end)."""
        wanted = min(part.size, limit)
        if self._wrong_answers >= BLIND_AFTER:
            return wanted
        ask, probe = part.file.read_into_if_cached, self._probe
        position = part.position
        for offset in range(0, wanted, PROBE_STEP):
            if ask(position + offset, probe) is None:
                return offset
        return wanted if ask(position + wanted - 1, probe) is not None else 0

    def read_if_cached(self, part: FileSlice) -> bytes | bytearray | None:
        """The bytes of a small piece, short if the file ends in it; None when not cached."""
        if self._wrong_answers >= BLIND_AFTER:
            return part.read()
        buffer = bytearray(part.size)
        count = part.read_into_if_cached(memoryview(buffer))
        if count is None:
            return None
        return buffer if count == part.size else buffer[:count]

    def warm(self, part: FileSlice, done: Callable[[int, Exception | None], None]) -> None:
        """Reads the beginning of `part` on a lane; `done(bytes now cached, error)` on the loop."""
        size = min(part.size, WARM_BYTES)
        self.visits += 1
        future = self._lanes.run(self._log_dir, _read, part.file, part.position, size)

        def finished(read: asyncio.Future[int]) -> None:
            if read.cancelled():
                return
            error = read.exception()
            if isinstance(error, Exception):
                done(0, error)
                return
            still_absent = part.file.read_into_if_cached(part.position, self._probe) is None
            self._wrong_answers = self._wrong_answers + 1 if still_absent else 0
            done(read.result(), None)

        future.add_done_callback(finished)


def _read(file: File, position: int, size: int) -> int:
    count = file.read_into(position, memoryview(bytearray(size)))
    if count == 0:
        raise DiskError(file.path, "read", f"the file ended before {position}")
    return count
