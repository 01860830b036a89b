"""The way out of one connection: buffers and pieces of log files, in order.

Everything is written to the socket directly, as far as the kernel takes it; the rest waits in a
queue that the loop drains when the socket becomes writable. Pieces of files are read into one
window that all connections share, and leave together with what surrounds them in one call: one
large send wakes the reader once, where `sendfile` wakes it for each 64 KiB (a third more processor
time a MiB). Pieces that are not in the page cache are fetched on a lane first, so that a cold
disk holds up nobody but who asked.

Rules: one sender is the only writer of its socket. It holds file pieces, not their bytes, so a slow
reader pins a few hundred bytes and not megabytes: what the kernel did not take is read again. A
failing socket is reported once, through `on_broken`, never raised.
"""

import asyncio
import contextlib
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Protocol, cast

from broker.server.page_cache import WINDOW_BYTES, PageCache
from storage.env import Buffer
from storage.errors import StorageError
from storage.files.file_slice import FileSlice

LEAST_WINDOW_BYTES = 64 * 1024  # of files, read for a socket that takes little at a time
TURN_BYTES = 4 * 1024 * 1024  # sent to one client before the others have their turn
MAX_PARTS = 512  # buffers given to one sendmsg; the system's limit is 1024

Part = bytes | bytearray | memoryview | FileSlice


class TruncatedPart(Exception):  # noqa: N818 - named after what happened
    """A file ended inside a piece that was promised to the client: the connection must close."""


class SocketLike(Protocol):
    """A non-blocking socket, as far as a sender needs one."""

    def send(self, data: Buffer, /) -> int: ...
    def sendmsg(self, buffers: Sequence[Buffer], /) -> int: ...
    def fileno(self) -> int: ...
    def detach(self) -> object: ...


class SocketSender:
    """Writes to one non-blocking socket, which stays the property of its transport."""

    __slots__ = (
        "_appetite",
        "_cache",
        "_loop",
        "_on_broken",
        "_on_drained",
        "_queue",
        "_socket",
        "_warm_bytes",
        "_warming",
        "_watched",
        "queued_bytes",
        "sent_bytes",
    )

    def __init__(
        self,
        wire: SocketLike | int,
        loop: asyncio.AbstractEventLoop,
        cache: PageCache,
        *,
        on_drained: Callable[[], None],
        on_broken: Callable[[Exception], None],
    ) -> None:
        """`wire` or the descriptor of a socket. `on_drained()` is called when a queue that had
        formed is empty again.
        """
        self._loop = loop
        self._cache = cache
        self._socket: SocketLike = socket.socket(fileno=wire) if isinstance(wire, int) else wire
        self._on_drained = on_drained
        self._on_broken = on_broken
        self._queue: deque[Part] = deque()
        self._watched: int | None = None
        self._warming = False
        self._appetite = WINDOW_BYTES  # what the socket is likely to take at once
        self._warm_bytes = 0  # of the piece at the head of the queue, known to be cached
        self.queued_bytes = 0  # of memory: file pieces count nothing
        self.sent_bytes = 0

    @property
    def idle(self) -> bool:
        """True when everything given was taken by the kernel."""
        return not self._queue

    @property
    def queued_parts(self) -> int:
        """Buffers and file pieces that wait."""
        return len(self._queue)

    def send(self, parts: Sequence[Part]) -> None:
        """Sends the parts after everything sent before. Never blocks, never raises."""
        queue = self._queue
        if queue:
            self._append(parts)
            return
        try:
            data = b"".join(cast("Sequence[Buffer]", parts))
        except TypeError:  # a file piece among them
            self._append(parts)
            self._drain()
            return
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._on_broken(error)
            return
        self.sent_bytes += sent
        if sent < len(data):
            self._append((memoryview(data)[sent:],))
            self._watch()

    def close(self) -> None:
        """Drops what is queued and lets go of the socket; the transport closes it."""
        self._queue.clear()
        self.queued_bytes = 0
        self._unwatch()
        with contextlib.suppress(OSError):
            self._socket.detach()

    def _append(self, parts: Sequence[Part]) -> None:
        self._queue.extend(parts)
        self.queued_bytes += sum(len(part) for part in parts if isinstance(part, _BUFFERS))

    def _drain(self) -> bool:
        """Sends until the queue is empty (True), the socket full, or a piece has to be fetched."""
        turn_ends = self.sent_bytes + TURN_BYTES
        try:
            while self._queue:
                if not self._send_some() or self.sent_bytes > turn_ends:
                    if self._queue and not self._warming:
                        self._watch()
                    return not self._queue
        except BlockingIOError:
            self._watch()
            return False
        except (OSError, StorageError, TruncatedPart) as error:
            self._unwatch()
            self._on_broken(error)
            return False
        return True

    def _writable(self) -> None:
        if self._drain():
            self._unwatch()
            self._on_drained()

    def _watch(self) -> None:
        if self._watched is None:  # a duplicate, because the transport watches the original
            self._watched = os.dup(self._socket.fileno())
            self._loop.add_writer(self._watched, self._writable)

    def _unwatch(self) -> None:
        if self._watched is not None:
            self._loop.remove_writer(self._watched)
            os.close(self._watched)
            self._watched = None

    def _send_some(self) -> bool:
        """One call to the kernel; False when it took less than it was given, or nothing can go."""
        buffers = self._gather()
        if not buffers:
            return False
        wanted = sum(map(len, buffers))
        try:
            sent = self._socket.sendmsg(buffers)
        except BlockingIOError:
            sent = 0
        self.sent_bytes += sent
        self._taken(buffers, sent)
        if sent == wanted:
            self._appetite = min(WINDOW_BYTES, 2 * self._appetite)
            return True
        self._appetite = max(LEAST_WINDOW_BYTES, min(WINDOW_BYTES, sent))
        return False

    def _gather(self) -> list[Buffer]:
        """The next buffers to send: the first parts of the queue, file pieces within the window."""
        buffers: list[Buffer] = []
        room = self._cache.window[: self._appetite]
        for part in islice(self._queue, MAX_PARTS):
            if isinstance(part, _BUFFERS):
                buffers.append(part)
                continue
            data = self._read(part, room, at_head=not buffers) if room else None
            if data is None:
                break
            buffers.append(data)
            if len(data) < part.size:
                break
            room = room[len(data) :]
        return buffers

    def _read(self, part: FileSlice, room: memoryview, *, at_head: bool) -> memoryview | None:
        """The beginning of a piece; None when it has to be fetched first."""
        size = min(part.size, len(room))
        if at_head and self._warm_bytes:
            size = min(size, self._warm_bytes)
            count: int | None = part.file.read_into(part.position, room[:size])
        else:
            count = self._cache.read_if_cached(part.file, part.position, room[:size])
        if count is None:
            if at_head:
                self._fetch(part)
            return None
        if count < size:
            raise TruncatedPart(f"{part!r}: the file ended after {count} bytes of {size}")
        return room[:size]

    def _taken(self, buffers: Sequence[Buffer], sent: int) -> None:
        """Takes from the queue what the kernel has taken of its first parts."""
        queue = self._queue
        for buffer in buffers:
            part = queue[0]
            of_part = min(sent, len(buffer))
            sent -= of_part
            if isinstance(part, _BUFFERS):
                self.queued_bytes -= of_part
            else:
                self._warm_bytes = max(0, self._warm_bytes - of_part)
            if of_part == len(part):
                queue.popleft()
                continue
            if isinstance(part, _BUFFERS):
                queue[0] = memoryview(part)[of_part:]
            else:
                queue[0] = FileSlice(part.file, part.position + of_part, part.size - of_part)
            return

    def _fetch(self, part: FileSlice) -> None:
        """Has the beginning of a piece brought into the page cache; nothing is sent meanwhile."""
        self._warming = True
        self._unwatch()
        self._cache.warm(part, self._fetched)

    def _fetched(self, size: int, error: Exception | None) -> None:
        self._warming = False
        if not self._queue:  # the connection has gone meanwhile
            return
        if error is not None:
            self._on_broken(error)
            return
        self._warm_bytes = size
        if self._drain():
            self._on_drained()


_BUFFERS = (bytes, bytearray, memoryview)
