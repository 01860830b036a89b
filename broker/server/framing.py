"""Complete frames from the bytes of a socket, in place, without copying large ones.

Small frames are handled in the buffer that all connections share; a frame that is cut off there is
kept as a copy and completed in it. A large frame is received into a body buffer of the pool, and as
long as large frames keep coming the next one is received there from its first byte.

Rules: a length is judged on its fourth byte. A body never runs further ahead of what has arrived
than double, unless this client has sent a frame of that size before. `handle` may look at a frame
until it returns.
"""

from collections.abc import Callable
from struct import Struct

from broker.runtime.connection_limits import CloseConnection
from broker.server.buffer_pool import SHARED_BYTES, SMALLEST_BODY, Body, BufferPool
from protocol.errors import DecodeError
from protocol.frames import MIN_FRAME_BYTES, check_length, foreign_protocol

LARGE_FRAME = SHARED_BYTES // 2  # beyond it a frame gets a body buffer
PREFIX = 4

_LENGTH = Struct(">i")


class ForeignProtocol(CloseConnection):
    """The first bytes belong to another protocol; `kind` is one of tls, http, ssh."""

    def __init__(self, kind: str) -> None:
        """`kind` as protocol.frames names it."""
        super().__init__("foreign_protocol", f"the client speaks {kind}")
        self.kind = kind


class FrameReader:
    """The frames of one connection. `held` means that whole frames may wait for `resume`."""

    __slots__ = (
        "_body",
        "_filled",
        "_largest",
        "_need",
        "_next_is_large",
        "_pool",
        "_refused",
        "_stash",
        "_working",
        "frames",
        "handle",
        "held",
        "least",
        "limit",
    )

    def __init__(self, pool: BufferPool, limit: int, handle: Callable[[memoryview], bool]) -> None:
        """`handle(frame)` returns False when no further frame may be handled before `resume`."""
        self._pool = pool
        self.limit = limit
        """Bytes of the longest frame; a connection's rules may change between two frames."""
        self.least = MIN_FRAME_BYTES
        self.handle = handle
        self._body: Body | None = None
        self._filled = 0
        self._need = PREFIX  # bytes until the frame in progress is complete or its length known
        self._largest = 0
        self._next_is_large = False
        self._refused: CloseConnection | None = None
        self._stash: bytes | bytearray = b""
        self._working = False
        self.frames = 0
        self.held = False

    @property
    def partial_bytes(self) -> int:
        """Bytes of the unfinished frame that are there."""
        return self._filled or len(self._stash)

    def buffer(self) -> memoryview:
        """The buffer for the next bytes. Valid for one read."""
        body = self._body
        if body is not None:
            if self._filled == len(body):
                try:
                    body = self._grow(body)
                except CloseConnection as error:
                    self._refused = error  # a transport cannot be closed while it asks: `received`
                    return self._pool.shared_view
            return memoryview(body)[self._filled : max(self._need, self._filled + PREFIX)]
        stashed = len(self._stash)
        if self._next_is_large and self._pool.has(self._largest):
            body = self._begin(self._largest, self._stash)
            return memoryview(body)[stashed : self._largest]
        view = self._pool.shared_view
        if stashed:
            view[:stashed] = self._stash
            return view[stashed:]
        return view

    def received(self, size: int) -> None:
        """`size` bytes are in `buffer`; handles complete frames.

        Raises CloseConnection for a length that cannot be, another protocol, or too much memory.
        """
        if self._body is None:
            end = len(self._stash) + size
            view = self._pool.shared_view
            self._keep(view, self._consume(view, end), end)
            return
        if self._refused is not None:
            raise self._refused
        self._filled += size
        if self._filled >= self._need:
            self._consume_body(self._body)

    def resume(self) -> bool:
        """Handles suspended frames; True when none is left. Raises as `received`."""
        if self._working:
            return False
        self.held = False
        stash = self._stash
        view = memoryview(stash)
        self._keep(view, self._consume(view, len(stash)), len(stash))
        return not self.held

    def release(self, *, only_idle: bool = False) -> None:
        """Gives the body buffer back: nothing of a frame is in it, or the connection is over."""
        if self._body is not None and not self._working and not (only_idle and self._filled):
            self._pool.give_back(self._body)
            self._body = None
            self._filled = 0

    def _consume(self, view: memoryview, end: int) -> int:
        """Handles the complete frames of view[:end]; returns where the first unfinished begins."""
        position = 0
        self._working = True
        try:
            while end - position >= PREFIX:
                (size,) = _LENGTH.unpack_from(view, position)
                if not self.least <= size <= self.limit:
                    self._judge(view, position, size)
                stop = position + PREFIX + size
                if stop > end:
                    self._need = stop - position
                    return position
                self.frames += 1
                go_on = self.handle(view[position + PREFIX : stop])
                self._next_is_large = size > LARGE_FRAME
                if self._next_is_large:
                    self._largest = max(self._largest, size + PREFIX)
                position = stop
                if not go_on:
                    self.held = True
                    break
            self._need = PREFIX
        finally:
            self._working = False
        return position

    def _consume_body(self, body: Body) -> None:
        filled = self._filled
        try:
            position = self._consume(memoryview(body), filled)
        except CloseConnection:
            self.release()
            raise
        if position:
            self._body, self._filled = None, 0
            try:
                self._keep(memoryview(body), position, filled)
            finally:
                self._pool.give_back(body)

    def _keep(self, view: memoryview, position: int, end: int) -> None:
        """Saves the rest of a read: a cut-off frame, or everything while suspended."""
        left = end - position
        if self._need > LARGE_FRAME and not self.held:
            size = min(self._need, max(self._largest, 2 * left, SMALLEST_BODY))
            self._begin(size, view[position:end])
        else:
            self._stash = bytearray(view[position:end]) if left else b""  # handlers write into it

    def _judge(self, view: memoryview, position: int, size: int) -> None:
        """A length that cannot be ends the connection; the first may be another protocol's text."""
        try:
            check_length(size, self.limit)
        except DecodeError as error:
            kind = foreign_protocol(bytes(view[position : position + PREFIX]))
            if kind is not None and not self.frames:
                raise ForeignProtocol(kind) from None
            raise CloseConnection("frame_size", str(error)) from None

    def _begin(self, size: int, start: "bytes | bytearray | memoryview") -> Body:
        body = self._body = self._pool.take(size)
        self._filled = len(start)
        body[: self._filled] = start
        self._stash = b""
        return body

    def _grow(self, body: Body) -> Body:
        larger = self._begin(min(self._need, 2 * len(body)), memoryview(body))
        self._pool.give_back(body)
        return larger
