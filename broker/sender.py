"""The way out of one connection: buffers and pieces of log files, in order, uncopied.

Everything is written to the socket directly, as far as the kernel takes it; the rest waits in a
queue that the loop drains when the socket becomes writable. Record bytes never enter the process
when they are more than a few KiB: `sendfile` hands the kernel's pages to the socket. Small pieces
are read and leave together with what surrounds them in one call. Pieces that are not in the page
cache are fetched on a lane first, so that a cold disk holds up nobody but who asked.

Rules: one sender is the only writer of its socket. It holds file pieces, not their bytes, so a slow
reader pins a few hundred bytes and not megabytes. A failing socket is reported once, through
`on_broken`, never raised.
"""

import asyncio
import contextlib
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import cast

from broker.page_cache import PageCache
from storage.env import Buffer
from storage.errors import StorageError
from storage.file_slice import FileSlice

INLINE_BYTES = 16 * 1024  # a file piece up to this size is read and sent with its neighbours
SENDFILE_BYTES = 2 * 1024 * 1024  # asked of the kernel in one call
TURN_BYTES = 4 * 1024 * 1024  # sent to one client before the others have their turn
MAX_PARTS = 512  # buffers given to one sendmsg; the system's limit is 1024

Part = bytes | bytearray | memoryview | FileSlice


class TruncatedPart(Exception):  # noqa: N818 - named after what happened
    """A file ended inside a piece that was promised to the client: the connection must close."""


class SocketSender:
    """Writes to one non-blocking socket, which stays the property of its transport."""

    __slots__ = (
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
        descriptor: int,
        loop: asyncio.AbstractEventLoop,
        cache: PageCache,
        *,
        on_drained: Callable[[], None],
        on_broken: Callable[[Exception], None],
    ) -> None:
        """`on_drained()` is called when a queue that had formed is empty again."""
        self._loop = loop
        self._cache = cache
        self._socket = socket.socket(fileno=descriptor)
        self._on_drained = on_drained
        self._on_broken = on_broken
        self._queue: deque[Part] = deque()
        self._watched: int | None = None
        self._warming = False
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
        first = self._queue[0]
        if isinstance(first, _BUFFERS):
            return self._send_buffers()
        if _is_small(first):
            return self._read_inline(first)
        return self._send_file(first)

    def _send_buffers(self) -> bool:
        buffers: list[Buffer] = []
        total = more = 0
        queue = self._queue
        while queue and len(buffers) < MAX_PARTS:
            part = queue[0]
            if not isinstance(part, _BUFFERS):
                if not (_is_small(part) and self._read_inline(part)):
                    more = 0 if self._warming else socket.MSG_MORE
                    break
                part = cast("Buffer", queue[0])
            buffers.append(part)
            total += len(part)
            queue.popleft()
        try:
            sent = self._socket.sendmsg(buffers, (), more)
        except BlockingIOError:
            sent = 0
        self.sent_bytes += sent
        self.queued_bytes -= sent
        if sent == total:
            return not self._warming
        queue.extendleft(reversed(_unsent(buffers, sent)))
        return False

    def _read_inline(self, part: FileSlice) -> bool:
        """Replaces a small piece by its bytes at the head of the queue; False: being fetched."""
        data = self._cache.read_if_cached(part)
        if data is None:
            self._fetch(part)
            return False
        if len(data) != part.size:
            raise TruncatedPart(f"{part!r} has only {len(data)} bytes")
        self._queue[0] = data
        self.queued_bytes += len(data)
        return True

    def _send_file(self, part: FileSlice) -> bool:
        if not self._warm_bytes:
            self._warm_bytes = self._cache.cached_up_to(part, SENDFILE_BYTES)
            if not self._warm_bytes:
                self._fetch(part)
                return False
        descriptor = part.file.fileno()
        assert descriptor is not None
        wanted = self._warm_bytes
        sent = os.sendfile(self._socket.fileno(), descriptor, part.position, wanted)
        if sent == 0:
            raise TruncatedPart(f"the file ended inside {part!r}")
        self.sent_bytes += sent
        self._warm_bytes -= sent
        if sent == part.size:
            self._queue.popleft()
        else:
            self._queue[0] = FileSlice(part.file, part.position + sent, part.size - sent)
        return sent == wanted

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
        first = self._queue[0]
        if isinstance(first, FileSlice) and not _is_small(first):
            self._warm_bytes = size
        elif isinstance(first, FileSlice):
            self._queue[0] = first.read()
            self.queued_bytes += first.size
        if self._drain():
            self._on_drained()


_BUFFERS = (bytes, bytearray, memoryview)


def _is_small(part: FileSlice) -> bool:
    return part.size <= INLINE_BYTES or part.file.fileno() is None


def _unsent(buffers: list[Buffer], sent: int) -> list[Buffer]:
    """The buffers that are left when `sent` bytes of them have gone."""
    for index, buffer in enumerate(buffers):
        if sent < len(buffer):
            return [memoryview(buffer)[sent:], *buffers[index + 1 :]]
        sent -= len(buffer)
    return []
