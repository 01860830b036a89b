"""Test for file bytes that can be sent without a disk read, and a lane that reads them if not.

The kernel is asked by a read that refuses to wait. Where a file system cannot answer that question,
bytes count as cached: waiting now and then is better than a detour for every answer.
"""

import asyncio
from collections.abc import Callable

from broker.runtime.lanes import DiskLane
from storage.env import File
from storage.errors import DiskError
from storage.files.file_slice import FileSlice

WINDOW_BYTES = 1024 * 1024  # of files, read at once for one connection
WARM_BYTES = 2 * 1024 * 1024  # fetched by one visit to the lane
BLIND_AFTER = 3  # bytes that were just read and are said not to be there, so many times running


class PageCache:
    """Asks for all senders of a broker. Used from the event loop; `warm` works on a lane."""

    def __init__(self, lane: DiskLane) -> None:
        """Files are read on `lane`."""
        self._lane = lane
        self._probe = memoryview(bytearray(1))
        self.window = memoryview(bytearray(WINDOW_BYTES))  # the next sender overwrites it
        self._wrong_answers = 0
        self.visits = 0

    def read_if_cached(self, file: File, position: int, buffer: memoryview) -> int | None:
        """Fills `buffer`, less if the file ends in it; None when not all of it is cached."""
        if self._wrong_answers >= BLIND_AFTER:
            return file.read_into(position, buffer)
        return file.read_into_if_cached(position, buffer)

    def warm(self, part: FileSlice, done: Callable[[int, Exception | None], None]) -> None:
        """Reads the beginning of `part` on a lane; `done(bytes now cached, error)` on the loop."""
        size = min(part.size, WARM_BYTES)
        self.visits += 1
        future = self._lane.run(_read, part.file, part.position, size)

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
