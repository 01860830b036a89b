"""The way out of a connection with TLS: as `SocketSender`, through a pipe that encrypts.

It has no socket to write to. What the pipe has taken is on its way; the rest stays in the queue,
file pieces unread.
"""

import asyncio
import ssl
from collections.abc import Callable, Sequence

from broker.security.tls_pipe import TlsPipe
from broker.server.page_cache import WINDOW_BYTES, PageCache
from broker.server.sender import Part, SocketSender
from storage.env import Buffer


class TlsSender(SocketSender):
    """Writes to one pipe; `sent_bytes` is ciphertext."""

    __slots__ = ("_pipe",)

    def __init__(
        self,
        pipe: TlsPipe,
        loop: asyncio.AbstractEventLoop,
        cache: PageCache,
        *,
        on_drained: Callable[[], None],
        on_broken: Callable[[Exception], None],
    ) -> None:
        """As `SocketSender`, with the pipe in the socket's place."""
        super().__init__(pipe, loop, cache, on_drained=on_drained, on_broken=on_broken)
        self._pipe = pipe

    @property
    def idle(self) -> bool:
        """True when the kernel has taken all ciphertext of everything given."""
        return not (self._queue or self._pipe.waiting_bytes)

    def send(self, parts: Sequence[Part]) -> None:
        """Sends the parts after everything sent before. Never blocks, never raises."""
        waits = bool(self._queue)
        self._append(parts)
        if not waits:
            self._drain()

    def flush(self) -> None:
        """Sends ciphertext that waits in the pipe: of a handshake, or an answer to new keys."""
        if self._pipe.waiting_bytes:
            self._drain()

    def _drain(self) -> bool:
        pipe = self._pipe
        try:
            pipe.flush()
            done = not self._warming and super()._drain()  # a piece is fetched once
        except (OSError, ssl.SSLError) as error:
            self._unwatch()
            self._on_broken(error)
            return False
        self.sent_bytes = pipe.sent_bytes
        if done and pipe.waiting_bytes:
            self._watch()
            return False
        return done

    def _send_some(self) -> bool:
        pipe = self._pipe
        self._appetite = min(WINDOW_BYTES, pipe.room)
        buffers = self._gather() if self._appetite else []
        if not buffers:
            return False
        self._taken(buffers, pipe.sendmsg(buffers, is_end=self._is_all(buffers)))
        self.sent_bytes = pipe.sent_bytes
        return not pipe.waiting_bytes

    def _is_all(self, buffers: list[Buffer]) -> bool:
        queue = self._queue
        return len(buffers) == len(queue) and len(buffers[-1]) == len(queue[-1])
