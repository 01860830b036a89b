"""Memory that requests are received into: one small buffer for all, big ones shared by turns.

A read from a socket and the callback that consumes it are one step of the loop, so all connections
can receive into the same `shared` buffer: an idle connection holds no memory, and the buffer stays
in the processor's cache. What a step leaves unfinished is kept by the connection: a short remainder
as a copy, a large frame in a body buffer of this pool, which returns when the frame was handled.

Rule: a frame's bytes are valid until the handler returns. Code that needs them longer copies them.
"""

from broker.runtime.connection_limits import UNLIMITED, CloseConnection
from protocol.records.blank import blank

Body = bytearray | memoryview

SHARED_BYTES = 256 * 1024
SMALLEST_BODY = 256 * 1024
KEPT_BYTES = 32 * 1024 * 1024  # idle body buffers the pool holds on to


class BufferPool:
    """Body buffers by size class (powers of two), last used first."""

    def __init__(self, kept_bytes: int = KEPT_BYTES, most_bytes: int = UNLIMITED) -> None:
        """`kept_bytes`: how much idle memory stays for reuse; `trim` lets it go.

        `most_bytes`: what may be in use at one time; the first buffer may be larger.
        """
        self.shared = bytearray(SHARED_BYTES)
        self.shared_view = memoryview(self.shared)
        self._kept_limit = kept_bytes
        self._kept = 0
        self._used_since_trim = False
        self._free: dict[int, list[Body]] = {}
        self._most = most_bytes
        self.used_bytes = 0
        """In body buffers that were taken and not given back."""

    def has(self, size: int) -> bool:
        """True when a buffer of `size` bytes can be taken now."""
        return not self.used_bytes or self.used_bytes + _capacity(size) <= self._most

    def take(self, size: int) -> Body:
        """A buffer of at least `size` bytes, with arbitrary contents.

        CloseConnection (request_memory) when all together would be over their limit.
        """
        capacity = _capacity(size)
        if not self.has(size):
            raise CloseConnection(
                "request_memory",
                f"{self.used_bytes} bytes of requests are under way: another {capacity} would be "
                "above queued.max.request.bytes, or their share of horolog.memory.max.bytes",
            )
        self.used_bytes += capacity
        self._used_since_trim = True
        free = self._free.get(capacity)
        if free:
            self._kept -= capacity
            return free.pop()
        return blank(capacity)

    def give_back(self, buffer: Body) -> None:
        """The frame was handled; nobody may look at the buffer any more."""
        capacity = len(buffer)
        self.used_bytes -= capacity
        if self._kept + capacity <= self._kept_limit:
            self._kept += capacity
            self._free.setdefault(capacity, []).append(buffer)

    def trim(self) -> None:
        """Frees all idle buffers if none was used since the last call; call it now and then."""
        if not self._used_since_trim:
            self._free.clear()
            self._kept = 0
        self._used_since_trim = False

    @property
    def kept_bytes(self) -> int:
        """Idle memory kept at the moment, in bytes."""
        return self._kept


def _capacity(size: int) -> int:
    return max(SMALLEST_BODY, 1 << (size - 1).bit_length())
