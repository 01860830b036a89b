"""One client connection: requests in order, responses in the same order, back-pressure both ways.

Answers of one read leave in one write. A request whose answer must wait is parked; later
requests are handled meanwhile, up to a bound, and their answers queue behind it; behind a change
that takes turns with others they wait themselves, as with Kafka. An answer that is there does not
wait for a long poll before it: that one ends with what there is (Kafka's consumers ask for offsets
behind a fetch, and would hear nothing for all of `fetch.max.wait.ms`).

Rules: nothing here blocks, and nothing knows what a request means. No timer per request: `sweep` is
called about once a second for everything that depends on time. Whatever goes wrong ends this
connection only.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Protocol, cast

from broker.runtime.connection_limits import MIN_FRAME_RATE, CloseConnection, ConnectionLimits
from broker.runtime.event_log import event
from broker.runtime.principals import USER, Principal
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import Peer
from broker.runtime.rights import Rights
from broker.security.sasl.exchange import Proof
from broker.server.buffer_pool import BufferPool
from broker.server.busy_poll import Lockstep
from broker.server.dispatcher import Parts, Pending
from broker.server.doors import Door, Guest
from broker.server.framing import ForeignProtocol, FrameReader
from broker.server.page_cache import PageCache
from broker.server.sender import SocketSender

TURN_BYTES = 1024 * 1024  # received from one client before the others have their turn
TURN_SECONDS = 0.02  # or worked for it, beyond the request that is being handled
SMALL_BYTES = 16 * 1024  # what arrives at once when single requests go back and forth
FLUSH_PARTS = 64  # answers of one read leave together, up to so many buffers
FLUSH_BYTES = 64 * 1024  # and one of this size does not wait for others


class Host(Protocol):
    """Services that a connection needs of its server."""

    pool: BufferPool
    page_cache: PageCache
    limits: ConnectionLimits
    probes: BrokerProbes
    loop: asyncio.AbstractEventLoop
    dispatch: "Callable[[memoryview, Peer], Parts | Pending | None]"
    lockstep: Lockstep
    doors: Mapping[str, Door]
    rights_of: Callable[[Principal, str], Rights | None]

    def admit(
        self, connection: "Connection", transport: asyncio.Transport, listener_name: str
    ) -> Peer | None:
        """The facts of a new connection, or None when there are too many: it ends then."""

    def forget(self, connection: "Connection") -> None:
        """The connection is over."""

    def foreign_answer(self, kind: str) -> bytes:
        """The answer for a client that speaks another protocol."""


class _Slot:
    """The place of one request's answer in the order of answers, and what waiting costs."""

    __slots__ = ("parts", "pending", "size_bytes")

    def __init__(self, pending: Pending | None, parts: Parts | None, size_bytes: int) -> None:
        self.pending = pending
        self.parts = parts
        self.size_bytes = size_bytes


class Connection(asyncio.BufferedProtocol):
    """The protocol object of one accepted socket."""

    __slots__ = (
        "_active",
        "_closing",
        "_flush_scheduled",
        "_frames",
        "_guest",
        "_host",
        "_in_flight",
        "_listener_name",
        "_muted",
        "_muted_until",
        "_out",
        "_parked_bytes",
        "_progress",
        "_sender",
        "_stopping",
        "_transport",
        "_turn_bytes",
        "_turn_ends",
        "peer",
        "received_bytes",
    )

    peer: Peer
    _transport: asyncio.Transport
    _sender: SocketSender

    def __init__(self, host: Host, listener_name: str) -> None:
        """Waits for `connection_made`."""
        self._host = host
        self._listener_name = listener_name
        self._frames = FrameReader(host.pool, host.limits.max_frame_bytes, self._handle)
        self._out: Parts = []
        self._in_flight: deque[_Slot] = deque()
        self._active = True
        self._stopping = False
        self._flush_scheduled = False
        self._closing: str | None = None
        self._progress = _Progress()
        self._parked_bytes = 0
        self._turn_bytes = 0
        self._turn_ends = 0.0
        self._muted: asyncio.Handle | None = None
        self._muted_until = 0.0
        self._guest: Guest | None = None
        self.received_bytes = 0

    # -- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client was accepted."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        peer = self._host.admit(self, self._transport, self._listener_name)
        if peer is None:
            self._closing = "refused"
            return
        self.peer = peer
        self._sender = self._make_sender(transport.get_extra_info("socket").fileno())
        door = self._host.doors.get(self._listener_name)
        if door is not None:
            self._guest = door.met(self, self._frames)

    def _make_sender(self, descriptor: int) -> SocketSender:
        return SocketSender(
            descriptor,
            self._host.loop,
            self._host.page_cache,
            on_drained=self._drained,
            on_broken=self._broken,
        )

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        """The connection is over, whichever side ended it."""
        if self._closing == "refused":
            self._frames.release()
            return
        self._closing = self._closing or "peer"
        self._sender.close()
        if self._muted is not None:
            self._muted.cancel()
        for slot in self._in_flight:
            if slot.pending is not None:
                slot.pending.abandon()
        self._in_flight.clear()
        self._out.clear()
        self._frames.release()
        if self._guest is not None:
            self._guest.left()
        self._host.forget(self)

    def eof_received(self) -> bool:
        """The client sends no more: as for Kafka, that ends the connection."""
        return False

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's name
        """The buffer for the next bytes."""
        return self._frames.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """`nbytes` arrived where `get_buffer` said."""
        self._active = True
        self.received_bytes += nbytes
        if self._closing:
            return
        self._turn_ends = self._host.probes.monotonic() + TURN_SECONDS
        try:
            self._frames.received(nbytes)
        except CloseConnection as error:
            self._refuse(error)
            return
        if self._out:
            self._flush()
            if nbytes < SMALL_BYTES:
                self._host.lockstep.answered(self._turn_ends - TURN_SECONDS)
        if self._frames.held:
            self._transport.pause_reading()
            return
        self._turn_bytes += nbytes
        if self._turn_bytes >= TURN_BYTES:
            self._transport.pause_reading()
            self._host.loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        """The others have been served: this one may go on (loops read a socket many times)."""
        self._turn_bytes = 0
        if not (self._frames.held or self._closing or self.is_muted):
            self._read_on()

    def _read_on(self) -> None:
        """Nothing that was received is left to handle: more may come."""
        self._transport.resume_reading()

    # -- requests and answers

    def _handle(self, frame: memoryview) -> bool:
        result = self._host.dispatch(frame, self.peer)
        if result is None:
            return not self.is_muted
        if not isinstance(result, list):
            slot = _Slot(result, None, len(frame))
            self._park(slot)
            result.listen(partial(self._answered, slot))
        elif self._in_flight:
            self._park(_Slot(None, result, _memory_of(result)))
            self._hurry_before(self._in_flight[-1])
        else:
            self._out += result
            if len(self._out) < FLUSH_PARTS and len(result[0]) < FLUSH_BYTES:
                return self._has_the_turn()
            self._flush()
        return not (self._closing or self._blocked()) and self._has_the_turn()

    def _has_the_turn(self) -> bool:
        """True when this client may continue at once; else it does after the others."""
        if self._host.probes.monotonic() < self._turn_ends:
            return True
        self._schedule_flush()
        return False

    def _park(self, slot: _Slot) -> None:
        self._in_flight.append(slot)
        self._parked_bytes += slot.size_bytes

    def _hurry_before(self, ready: _Slot) -> None:
        for slot in self._in_flight:
            if slot is ready:
                return
            if slot.pending is not None:
                slot.pending.hurry()

    def _answered(self, slot: _Slot, parts: Parts | None, error: CloseConnection | None) -> None:
        """A parked request has its answer; what is ready at the head of the order leaves."""
        slot.pending = None
        if error is not None:
            self._refuse(error)
            return
        slot.parts = parts or []
        in_flight = self._in_flight
        if in_flight[0] is not slot:
            kept = _memory_of(slot.parts)
            self._parked_bytes += kept - slot.size_bytes
            slot.size_bytes = kept
            self._hurry_before(slot)
        while in_flight and in_flight[0].parts is not None:
            first = in_flight.popleft()
            self._parked_bytes -= first.size_bytes
            self._out += first.parts or ()
        if in_flight or self._frames.held:
            self._schedule_flush()
        else:
            self._flush()

    def _schedule_flush(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._host.loop.call_soon(self._flush_later)

    def _flush_later(self) -> None:
        self._flush_scheduled = False
        self._flush()
        self._resume()

    def _flush(self) -> None:
        out = self._out
        if out and not self._closing:
            self._out = []
            self._sender.send(out)

    # -- who the client is

    def tell(self, parts: Parts) -> None:
        """Sends an answer of the door, in its turn, then goes on with frames that wait."""
        if self._in_flight:
            self._park(_Slot(None, parts, _memory_of(parts)))
            self._hurry_before(self._in_flight[-1])
        else:
            self._out += parts
        self._schedule_flush()

    def serve(self, proof: Proof) -> None:
        """The client is known: its requests are served from the next frame on."""
        self._is_from(Principal(USER, proof.user), by_token=proof.by_token)
        self._frames.handle = self._handle

    def _is_from(self, principal: Principal, *, by_token: bool = False) -> None:
        """The user is known: its rights are those that count from the next request on."""
        rights = self._host.rights_of(principal, self.peer.client_host)
        self.peer = replace(self.peer, principal=principal, rights=rights, by_token=by_token)

    # -- back-pressure

    def _blocked(self) -> bool:
        limits, sender = self._host.limits, self._sender
        return (
            len(self._in_flight) >= limits.max_in_flight
            or self._parked_bytes > limits.max_parked_bytes
            or sender.queued_bytes > limits.max_queued_bytes
            or sender.queued_parts > limits.max_queued_parts
            or self._stopping
            or self.is_muted
            or self._keeps_order
            or (self._guest is not None and self._guest.is_busy)
        )

    @property
    def _keeps_order(self) -> bool:
        """True while the newest request is a change that later ones must not overtake."""
        pending = self._in_flight[-1].pending if self._in_flight else None
        return pending is not None and pending.keeps_order

    @property
    def is_muted(self) -> bool:
        """True while nothing is read from the client because it is over its quota."""
        return self._muted is not None

    def mute(self, seconds: float) -> None:
        """For so long nothing more is read or handled; answers go out all the same."""
        if self._closing:
            return
        loop = self._host.loop
        ends = loop.time() + seconds
        if self._muted is not None:
            ends = max(ends, self._muted_until)
            self._muted.cancel()
        self._muted_until = ends  # the handle may not know: uvloop's of less than a ms do not
        self._muted = loop.call_at(ends, self._unmute)
        self._turn_ends = 0.0  # what came with this request waits too
        self._transport.pause_reading()

    def _unmute(self) -> None:
        self._muted = None
        if self._frames.held:
            self._resume()
        elif not (self._closing or self._transport.is_closing()):
            self._read_on()

    def _resume(self) -> None:
        """Handles suspended frames, then reads on, unless we are blocked again."""
        if not self._frames.held or self._closing or self._blocked():
            return
        self._turn_ends = self._host.probes.monotonic() + TURN_SECONDS
        try:
            read_on = self._frames.resume()
        except CloseConnection as error:
            self._refuse(error)
            return
        self._flush()
        if read_on and not (self.is_muted or self._transport.is_closing()):
            self._read_on()

    def _drained(self) -> None:
        if self._closing:
            self._hang_up()
        else:
            self._resume()

    # -- the end

    def _refuse(self, error: CloseConnection) -> None:
        """The client did something that Kafka answers by closing the connection."""
        event("connection_refused", "warning", reason=error.reason, peer=self.peer, detail=error)
        if isinstance(error, ForeignProtocol):
            self._host.probes.foreign_protocol(error.kind)
            self._out.append(self._host.foreign_answer(error.kind))
        self.close(error.reason)

    def _broken(self, error: Exception) -> None:
        if not isinstance(error, ConnectionError):
            event("connection_broken", "warning", peer=self.peer, error=error)
        self.abort("broken")

    def close(self, reason: str) -> None:
        """Ends the connection once what is already answered has left."""
        if self._closing:
            return
        self._flush()
        self._end(reason)
        if self._sender.idle:
            self._hang_up()
        elif not self._transport.is_closing():
            self._transport.pause_reading()

    def _hang_up(self) -> None:
        """Everything has left."""
        self._transport.close()

    def abort(self, reason: str) -> None:
        """Ends the connection at once."""
        self._end(reason)
        self._transport.abort()

    def _end(self, reason: str) -> None:
        if not self._closing:
            self._closing = reason
            self._host.probes.connection_closed(reason)

    def stop(self) -> bool:
        """A graceful stop: no new requests. True once nothing was left to answer."""
        self._stopping = True
        if self._in_flight or self._out or not self._sender.idle:
            return False
        self.close("stopping")
        return True

    @property
    def sent_bytes(self) -> int:
        """Bytes that the kernel has taken so far."""
        return self._sender.sent_bytes

    @property
    def queued_bytes(self) -> int:
        """Memory that waits for the client to read."""
        return self._sender.queued_bytes

    def sweep(self, now: float) -> None:
        """Everything that depends on time; `now` in monotonic seconds."""
        self._frames.release(only_idle=True)
        reason = self._overdue(now)
        if reason is not None:
            event("connection_dropped", "info", reason=reason, peer=self.peer)
            self.abort(reason)

    def _overdue(self, now: float) -> str | None:
        seen, limits, sender, frames = self._progress, self._host.limits, self._sender, self._frames
        if self._active:
            seen.active_at, self._active = now, False
        if sender.idle or sender.sent_bytes != seen.sent_bytes:
            seen.sent_bytes, seen.sent_at = sender.sent_bytes, now
        waits_for_us = frames.held or self.is_muted
        if frames.frames != seen.frames or not frames.partial_bytes or waits_for_us:
            seen.frames, seen.frame_at = frames.frames, now
        if now - seen.sent_at > limits.stalled_seconds:
            return "stalled_reader"
        if self._guest is not None and self._guest.late_at(now):
            return "authentication_late"
        if not frames.frames:
            seen.accepted_at = seen.accepted_at or now
            late = now - seen.accepted_at > limits.first_frame_seconds
            return "first_frame_late" if late else None
        if now - seen.frame_at > limits.frame_seconds + frames.partial_bytes / MIN_FRAME_RATE:
            return "frame_late"
        waits = self._in_flight or not sender.idle
        return "idle" if now - seen.active_at > limits.idle_seconds and not waits else None


def _memory_of(parts: Parts) -> int:
    """Memory of an answer's buffers, in bytes; pieces of files take none until they are sent."""
    return sum(len(part) for part in parts if isinstance(part, bytes | bytearray | memoryview))


class _Progress:
    """Progress as of the last sweep, with its times."""

    __slots__ = ("accepted_at", "active_at", "frame_at", "frames", "sent_at", "sent_bytes")

    def __init__(self) -> None:
        self.accepted_at = 0.0
        self.active_at = 0.0
        self.sent_at = 0.0
        self.sent_bytes = -1
        self.frame_at = 0.0
        self.frames = -1
