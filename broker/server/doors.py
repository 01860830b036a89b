"""Doors of SASL listeners: connections that have to prove who they are before they are served.

A `Guest` stands where the connection's own handler of frames stands later, so that an authenticated
connection pays nothing; where its session has an end, it looks at each frame. It drives the gate
(`broker.security.sasl.gate`) and keeps its limits: of time, of bytes, of guests at one time, and
the delay of who failed.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from struct import Struct
from typing import Protocol

from broker.runtime.callbacks import failed
from broker.runtime.connection_limits import CloseConnection
from broker.runtime.deferred import Deferred
from broker.runtime.event_log import event
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import Peer
from broker.security.sasl.exchange import Proof
from broker.security.sasl.failures import FailureDelays
from broker.security.sasl.gate import Dispatch, Exchanges, FailedStep, Gate, Reply, State, Step
from broker.security.sasl.sessions import Lifetimes, Session, SessionEnd
from broker.server.dispatcher import Parts, Pending
from protocol.apis import sasl_handshake
from protocol.frames import MIN_FRAME_BYTES

AUTHENTICATED_WITHIN_SECONDS = 10.0
GUESTS_OF_CONNECTIONS = 10  # one in so many of max.connections may be unauthenticated
_LENGTH = Struct(">i")
_API_KEY = Struct(">h")
_ERROR_CODE = Struct(">h")
_ERROR_CODE_AT = 8  # of ApiVersions' answer: behind length and correlation id


class Timer(Protocol):
    """A call that was put off."""

    def cancel(self) -> None:
        """It shall not come."""


class Frames(Protocol):
    """The rules of a connection's frame reader that a guest changes."""

    limit: int
    least: int
    handle: Callable[[memoryview], bool]


class Visited(Protocol):
    """A connection as its guest sees it."""

    peer: Peer

    def tell(self, parts: Parts) -> None:
        """Sends an answer, then goes on with frames that wait."""

    def serve(self, proof: Proof) -> None:
        """The client is known: its requests are served from the next frame on."""

    def close(self, reason: str) -> None:
        """Ends the connection once what is already answered has left."""

    def abort(self, reason: str) -> None:
        """Ends the connection at once."""


class OnFailed(Protocol):
    """Hears of clients that did not prove who they are, for the audit."""

    def __call__(self, peer: Peer, way: str, claimed: str, detail: str, /) -> None:
        """`way` is a mechanism; `claimed` the name that the client gave, empty for none."""


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """Limits of one listener's guests, in bytes."""

    max_frame_bytes: int
    served_frame_bytes: int


class Lobby:
    """Guests of all doors, and who was let in by which credential. Used from the event loop."""

    def __init__(
        self,
        delays: FailureDelays,
        probes: BrokerProbes,
        call_later: Callable[[float, Callable[[], None]], Timer],
        max_connections: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        """`call_later` counts seconds; `max_connections()` is the limit in force.

        `now_ms()` is the wall time that credentials end by.
        """
        self.on_failed: OnFailed = lambda *_: None
        self.on_expired: Callable[[Peer], None] = lambda _: None
        """Hears of clients whose session was over, for the audit."""
        self.delays = delays
        self.probes = probes
        self.call_later = call_later
        self._max_connections = max_connections
        self._now_ms = now_ms
        self._guests: dict[Guest, None] = {}  # the oldest first
        self._let_in: dict[Hashable, set[Guest]] = {}

    def came(self, guest: "Guest") -> None:
        """One more; when there are too many, the one that takes longest goes."""
        self._guests[guest] = None
        if len(self._guests) > max(1, self._max_connections() // GUESTS_OF_CONNECTIONS):
            next(iter(self._guests)).drop("unauthenticated")

    def proved(self, guest: "Guest", credential: Hashable | None) -> None:
        """It is no guest any more; who gave the credential may call it back."""
        self._guests.pop(guest, None)
        if credential is not None:
            self._let_in.setdefault(credential, set()).add(guest)

    def left(self, guest: "Guest", credential: Hashable | None) -> None:
        """Its connection is over, or it has proven its name once more."""
        self._guests.pop(guest, None)
        guests = self._let_in.get(credential)
        if guests is not None:
            guests.discard(guest)
            if not guests:
                del self._let_in[credential]

    def removed(self, credential: Hashable) -> None:
        """A credential is gone: so are the connections that it opened, at once."""
        for guest in list(self._let_in.get(credential, ())):
            guest.drop("credential_removed")

    def ends(self, credential: Hashable, at_ms: int) -> None:
        """A credential ends at this wall time: so do its sessions, unless they end earlier."""
        rest_seconds = (at_ms - self._now_ms()) / 1000
        for guest in self._let_in.get(credential, ()):
            guest.ends_in(rest_seconds)


class Door:
    """The door of one listener."""

    def __init__(
        self,
        lobby: Lobby,
        exchanges: Exchanges,
        lifetimes: Lifetimes,
        limits: DoorLimits,
        dispatch: Callable[[memoryview, Peer], Parts | Pending | None],
    ) -> None:
        """`exchanges` are its mechanisms; `dispatch` answers ApiVersions."""
        self.lobby = lobby
        self.exchanges = exchanges
        self.lifetimes = lifetimes
        self.limits = limits
        self.dispatch = dispatch

    def met(self, connection: Visited, frames: Frames) -> "Guest":
        """Stands before a new connection."""
        return Guest(self, connection, frames)


class Guest:
    """One connection at its door."""

    __slots__ = (
        "_began",
        "_connection",
        "_credential",
        "_door",
        "_end",
        "_frames",
        "_gate",
        "_pending",
        "_served",
        "_session",
        "_timer",
        "is_busy",
    )

    def __init__(self, door: Door, connection: Visited, frames: Frames) -> None:
        """Takes the connection's frames from now on."""
        self._door = door
        self._connection = connection
        self._frames = frames
        self._gate = Gate(door.exchanges, connection.peer.client_host, door.lifetimes)
        self._credential: Hashable | None = None
        self._session: Session | None = None
        self._end = SessionEnd()
        self._served: Callable[[memoryview], bool] | None = None
        self._pending: Deferred[Step] | None = None
        self._timer: Timer | None = None
        self._began = door.lobby.probes.monotonic()
        self.is_busy = False
        """True while a token is being judged, or a failure waits: no frame may be handled."""
        frames.limit = door.limits.max_frame_bytes
        frames.handle = self._handle
        door.lobby.came(self)

    def late_at(self, now: float) -> bool:
        """True when the client takes too long to say who it is."""
        is_late = now - self._began > AUTHENTICATED_WITHIN_SECONDS
        return is_late and self._gate.state is not State.DONE

    def drop(self, reason: str) -> None:
        """Ends the connection at once."""
        event("connection_dropped", "warning", reason=reason, peer=self._connection.peer)
        self._connection.abort(reason)
        self.left()

    def left(self) -> None:
        """The connection is over."""
        if self._timer is not None:
            self._timer.cancel()
        if self._pending is not None:
            self._pending.abandon()
        self._door.lobby.left(self, self._credential)

    def ends_in(self, seconds: float) -> None:
        """The session ends after so many seconds, unless it ends earlier."""
        at = self._door.lobby.probes.monotonic() + seconds
        self._end.at = at if self._end.at is None else min(self._end.at, at)
        self._watch_session()

    def _watch_session(self) -> None:
        """From now on each frame is looked at before it is served."""
        if self._served is None and self._gate.state is State.DONE:
            self._served = self._frames.handle
            self._frames.handle = self._in_session

    def _in_session(self, frame: memoryview) -> bool:
        """A frame of a client whose session ends: Kafka's rules (KIP-368)."""
        assert self._served is not None
        now = self._door.lobby.probes.monotonic()
        (api_key,) = _API_KEY.unpack_from(frame)
        if api_key == sasl_handshake.API.key and self._end.may_renew(now):
            return self._renew(frame)
        if self._end.is_past(now):
            self._door.lobby.on_expired(self._connection.peer)
            raise CloseConnection("session_expired", f"API {api_key} after the session's end")
        return self._served(frame)

    def _renew(self, frame: memoryview) -> bool:
        """The client proves its name once more; what it has asked for before is still answered."""
        door, frames = self._door, self._frames
        host = self._connection.peer.client_host
        self._gate = Gate(door.exchanges, host, door.lifetimes, self._session)
        self._began = door.lobby.probes.monotonic()
        self._served = None
        frames.limit, frames.handle = door.limits.max_frame_bytes, self._handle
        return self._handle(frame)

    def _handle(self, frame: memoryview) -> bool:
        try:
            step = self._gate.received(frame)
        except CloseConnection:
            raise
        except Exception as error:  # noqa: BLE001 - ends this connection only
            failed("authentication", error)
            raise CloseConnection("internal_error", repr(error)) from None
        if isinstance(step, Deferred):
            self._pending, self.is_busy = step, True
            step.listen(self._judged)
        elif isinstance(step, Dispatch):
            self._answer_versions(frame)
        else:
            self._take(step)
        return not self.is_busy

    def _answer_versions(self, frame: memoryview) -> None:
        """The answer that everybody gets. It is made at once: it only lists."""
        parts = self._door.dispatch(frame, self._connection.peer)
        assert isinstance(parts, list)
        assert isinstance(parts[0], bytes)
        (code,) = _ERROR_CODE.unpack_from(parts[0], _ERROR_CODE_AT)
        self._gate.versions_answered(code)
        self._connection.tell(parts)

    def _judged(self, step: Step | None, error: BaseException | None) -> None:
        self._pending, self.is_busy = None, False
        if step is not None:
            self._take(step)
            return
        if not isinstance(error, CloseConnection) and error is not None:
            failed("authentication", error)
        self._connection.close("internal_error")

    def _take(self, step: Step) -> None:
        if isinstance(step, FailedStep):
            self._fail(step)
            return
        assert isinstance(step, Reply)
        proven = self._gate.proven
        if proven is not None:
            self._let_in(proven)
        elif self._gate.state is State.RAW_TOKENS:
            self._frames.least = 0
        self._connection.tell(_framed(step.body))

    def _let_in(self, proven: Proof) -> None:
        frames, lobby, lifetime_ms = self._frames, self._door.lobby, self._gate.lifetime_ms
        frames.limit, frames.least = self._door.limits.served_frame_bytes, MIN_FRAME_BYTES
        lobby.left(self, self._credential)
        lobby.proved(self, proven.credential)
        lobby.probes.authenticated(self._gate.mechanism, again=self._session is not None)
        self._credential = proven.credential
        self._session = Session(self._gate.mechanism, proven.user)
        self._connection.serve(proven)
        self._end.at = None
        if lifetime_ms is not None:
            self.ends_in(lifetime_ms / 1000)

    def _fail(self, refusal: FailedStep) -> None:
        """The answer and the end come late, and nothing is read meanwhile."""
        lobby, peer = self._door.lobby, self._connection.peer
        self.is_busy = True
        lobby.probes.refused(refusal.api_key, refusal.code)
        event(
            "authentication_failed",
            "warning",
            peer=peer,
            listener=peer.listener_name,
            mechanism=self._gate.mechanism,
            detail=refusal.detail,
        )
        seconds = lobby.delays.failed(peer.client_host)
        self._timer = lobby.call_later(seconds, lambda: self._hang_up(refusal))
        # After the timer: whether such a user exists must not show in the time of the answer.
        lobby.on_failed(peer, self._gate.mechanism or "SASL", self._gate.claimed, refusal.detail)

    def _hang_up(self, refusal: FailedStep) -> None:
        if refusal.body is not None:
            self._connection.tell(_framed(refusal.body))
        self._connection.close("authentication_failed")


def _framed(body: bytes) -> Parts:
    return [_LENGTH.pack(len(body)) + body]
