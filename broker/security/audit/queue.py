"""The way of audit lines to their sink: a queue, written in order and apart from the event loop.

Who makes an administrative change gets no answer before there is room. What a file does not take
goes to standard error; what that does not take either waits, and `is_lost` says so.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from broker.runtime.callbacks import failed
from broker.runtime.deferred import Deferred
from broker.security.audit.sinks import AuditSink, StandardError

if TYPE_CHECKING:
    from broker.runtime.lanes import DiskLane

MAX_LINES = 10_000
LINES_A_WRITE = 500

Told = Callable[[int], None]
"""Hears how many lines of a write the file did not take; 0 when it took all."""


class AuditQueue:
    """Used from the event loop; the sink is called on a lane, for one write at a time."""

    def __init__(self, lane: "DiskLane", on_written: Told) -> None:
        """Writes to standard error until `use`."""
        self._lane = lane
        self._sink: AuditSink = StandardError()
        self._on_written = on_written
        self._lines: deque[str] = deque()
        self._waiting: dict[int, Deferred[None]] = {}
        self._under_way: asyncio.Future[tuple[int, int]] | None = None
        self.is_lost = False
        """True while nothing takes the lines: the last write reached neither file nor log."""
        self.written: dict[str, int] = {}
        """Lines by the sink that took them, since the start."""

    @property
    def length(self) -> int:
        """Lines that wait."""
        return len(self._lines)

    @property
    def waiting(self) -> int:
        """Number of those that wait for room."""
        return len(self._waiting)

    def use(self, sink: AuditSink) -> None:
        """From now on lines go there."""
        self._sink = sink

    def put(self, lines: Iterable[str]) -> None:
        """Takes lines, always; see `room`."""
        self._lines.extend(lines)
        self.write()

    @property
    def is_full(self) -> bool:
        """True when who administrates has to wait."""
        return len(self._lines) > MAX_LINES

    def room(self) -> Deferred[None] | None:
        """None when there is room, else a promise of it, which may be abandoned."""
        if not self.is_full:
            return None
        promise: Deferred[None] = Deferred()
        key = id(promise)
        self._waiting[key] = promise
        promise.when_abandoned(partial(self._forget, key))
        return promise

    def _forget(self, key: int) -> None:
        self._waiting.pop(key, None)

    def write(self) -> None:
        """Begins a write unless one is under way; to be called again after a failure."""
        if self._under_way is not None or not self._lines:
            return
        batch = [self._lines[at] for at in range(min(LINES_A_WRITE, len(self._lines)))]
        self._under_way = self._lane.run(_write, self._sink, batch)
        self._under_way.add_done_callback(self._done)

    async def drain(self) -> None:
        """Writes all there is, at the end; gives up when nothing takes it."""
        self.is_lost = False
        while self._lines and not self.is_lost:
            self.write()
            if self._under_way is not None:
                await asyncio.wait([self._under_way])
            await asyncio.sleep(0)

    def _done(self, future: "asyncio.Future[tuple[int, int]]") -> None:
        self._under_way = None
        taken = spilled = 0
        if future.cancelled() or (error := future.exception()) is not None:
            failed("security_audit", error or asyncio.CancelledError())
        else:
            taken, spilled = future.result()
        for _ in range(taken + spilled):
            self._lines.popleft()
        self._account(taken, spilled)
        self.is_lost = taken + spilled == 0
        if not self.is_lost:
            self._on_written(spilled)
            self._let_go()
            self.write()

    def _account(self, taken: int, spilled: int) -> None:
        for name, count in ((self._sink.name, taken), (StandardError.name, spilled)):
            if count:
                self.written[name] = self.written.get(name, 0) + count

    def _let_go(self) -> None:
        """In order, until what they add fills the queue again."""
        for key in list(self._waiting):
            if self.is_full:
                return
            promise = self._waiting.pop(key, None)
            if promise is not None:
                promise.resolve(None)


def _write(sink: AuditSink, lines: Sequence[str]) -> tuple[int, int]:
    """On a thread: how many lines the sink took, and how many standard error took for it."""
    taken = sink.write(lines)
    if taken == len(lines) or isinstance(sink, StandardError):
        return taken, 0
    return taken, StandardError().write(lines[taken:])
