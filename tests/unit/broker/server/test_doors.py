"""Doors: limits of guests, late answers to failures, and the end of who lost its credential."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from broker.runtime.connection_limits import CloseConnection
from broker.runtime.deferred import Deferred
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import Peer
from broker.security.credentials import CredentialKey, Mechanism
from broker.security.sasl.exchange import AuthenticationFailed, Proof
from broker.security.sasl.failures import FailureDelays
from broker.security.sasl.sessions import Lifetimes
from broker.server.dispatcher import Parts
from broker.server.doors import Door, DoorLimits, Guest, Lobby
from protocol.apis import metadata, sasl_authenticate, sasl_handshake
from protocol.frames import MIN_FRAME_BYTES
from tests.support.clients.wire import request_frame
from tests.support.disk.simenv import SimClock

ALICE = CredentialKey("alice", Mechanism.SCRAM_SHA_256)


class Timer:
    def __init__(self, seconds: float, call: Callable[[], None]) -> None:
        self.seconds = seconds
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Exchange:
    """The token `right` is right; `later` is judged when the test says so."""

    def __init__(self, waiting: list[Deferred[bytes]]) -> None:
        self.claimed = "someone"
        self.proven: Proof | None = None
        self.waiting = waiting

    def step(self, token: bytes) -> bytes | Deferred[bytes]:
        if token == b"bug":
            raise RuntimeError("a bug")
        if token == b"later":
            self.waiting.append(Deferred())
            return self.waiting[-1]
        if token != b"right":
            raise AuthenticationFailed("no")
        self.proven = Proof("alice", ALICE)
        return b"welcome"


@dataclass
class Connection:
    """What happened to it; also its frame reader."""

    limit: int = 1000
    least: int = MIN_FRAME_BYTES
    handle: Callable[[memoryview], bool] = lambda _: True
    peer: Peer = field(default_factory=lambda: Peer(1, "10.0.0.1", 1, "SASL_PLAINTEXT", "", 0))
    told: list[bytes] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    user: str = ""
    served: list[int] = field(default_factory=list)

    def tell(self, parts: Parts) -> None:
        self.told += [bytes(part) for part in parts if isinstance(part, bytes)]

    def serve(self, proof: Proof) -> None:
        self.user = proof.user
        self.handle = self.serves

    def serves(self, frame: memoryview) -> bool:
        self.served.append(int.from_bytes(frame[:2]))
        return True

    def close(self, reason: str) -> None:
        self.ended.append(reason)

    def abort(self, reason: str) -> None:
        self.ended.append(reason)


class House:
    def __init__(self, max_connections: int = 100, *, reauth_ms: int = 0) -> None:
        self.clock = SimClock()
        self.timers: list[Timer] = []
        self.waiting: list[Deferred[bytes]] = []
        self.lobby = Lobby(
            FailureDelays(self.clock.monotonic, 0.1),
            BrokerProbes(self.clock.monotonic),
            self._call_later,
            lambda: max_connections,
            self.clock.now_ms,
        )
        lifetimes = Lifetimes(self.clock.now_ms, {"ONE": reauth_ms})
        exchanges = {"ONE": lambda _: Exchange(self.waiting)}
        limits = DoorLimits(max_frame_bytes=500, served_frame_bytes=9000)
        self.door = Door(self.lobby, exchanges, lifetimes, limits, lambda frame, peer: [])

    def _call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        self.timers.append(Timer(seconds, call))
        return self.timers[-1]

    def guest(self) -> tuple[Guest, Connection]:
        connection = Connection()
        return self.door.met(connection, connection), connection

    def say(self, connection: Connection, token: bytes) -> bool:
        """Chooses the mechanism and sends a token; True when the client may go on."""
        shake = sasl_handshake.SaslHandshakeRequest(mechanism="ONE")
        assert connection.handle(memoryview(request_frame(shake, 1))[4:])
        request = sasl_authenticate.SaslAuthenticateRequest(auth_bytes=token)
        return connection.handle(memoryview(request_frame(request, 2))[4:])


def test_who_proves_it_is_served_with_the_limits_of_the_served() -> None:
    house = House()
    _, connection = house.guest()
    assert connection.limit == 500
    assert house.say(connection, b"right")
    assert (connection.user, connection.limit) == ("alice", 9000)
    assert b"welcome" in connection.told[-1]
    assert not house.timers


def test_a_failure_is_answered_and_ended_late_and_nothing_is_read_meanwhile() -> None:
    house = House()
    guest, connection = house.guest()
    assert not house.say(connection, b"wrong")
    assert guest.is_busy
    assert (len(connection.told), connection.ended) == (1, [])
    (timer,) = house.timers
    assert timer.seconds == 0.1
    timer.call()
    assert b"no" in connection.told[-1]
    assert connection.ended == ["authentication_failed"]
    assert house.lobby.probes.errors[36, 58] == 1


def test_a_client_that_goes_leaves_nothing_behind() -> None:
    house = House()
    guest, connection = house.guest()
    house.say(connection, b"wrong")
    guest.left()
    assert house.timers[0].cancelled
    guest, connection = house.guest()
    house.say(connection, b"later")
    guest.left()
    house.waiting[0].fail(AuthenticationFailed("no"))
    assert (len(connection.told), connection.ended) == (1, [])


def test_a_token_that_is_judged_later_holds_up_the_client_only_so_long() -> None:
    house = House()
    guest, connection = house.guest()
    assert not house.say(connection, b"later")
    assert guest.is_busy
    house.waiting[0].resolve(b"go on")
    assert not guest.is_busy
    assert b"go on" in connection.told[-1]
    _, connection = house.guest()
    house.say(connection, b"later")
    house.waiting[1].fail(AuthenticationFailed("no"))
    assert len(house.timers) == 1


def test_an_error_of_ours_ends_the_connection_and_lets_nobody_in() -> None:
    house = House()
    _, connection = house.guest()
    house.say(connection, b"later")
    house.waiting[0].fail(RuntimeError("a bug"))
    assert connection.ended == ["internal_error"]
    assert connection.user == ""
    _, connection = house.guest()
    with pytest.raises(CloseConnection, match="a bug") as closed:
        house.say(connection, b"bug")
    assert closed.value.reason == "internal_error"


def test_the_longest_guest_goes_when_there_are_too_many() -> None:
    house = House(max_connections=30)
    connections = [house.guest()[1] for _ in range(3)]
    house.say(connections[1], b"right")
    connections += [house.guest()[1] for _ in range(2)]
    assert [each.ended for each in connections] == [["unauthenticated"], [], [], [], []]
    house.guest()
    assert connections[1].ended == []
    assert connections[2].ended == ["unauthenticated"]


def test_ten_seconds_are_enough() -> None:
    house = House()
    slow, _ = house.guest()
    quick, connection = house.guest()
    house.say(connection, b"right")
    house.clock.advance(9_000)
    assert not slow.late_at(house.clock.monotonic())
    house.clock.advance(2_000)
    assert slow.late_at(house.clock.monotonic())
    assert not quick.late_at(house.clock.monotonic())


def test_who_lost_its_credential_is_disconnected_and_others_stay() -> None:
    house = House()
    _, connection = house.guest()
    house.say(connection, b"right")
    gone, connection_of_gone = house.guest()
    house.say(connection_of_gone, b"right")
    gone.left()
    house.lobby.removed(CredentialKey("alice", Mechanism.SCRAM_SHA_512))
    assert connection.ended == []
    house.lobby.removed(ALICE)
    assert connection.ended == ["credential_removed"]
    assert connection_of_gone.ended == []
    house.lobby.removed(ALICE)
    assert len(connection.ended) == 1


def test_raw_tokens_may_be_short_until_the_client_is_known() -> None:
    house = House()
    _, connection = house.guest()
    shake = sasl_handshake.SaslHandshakeRequest(mechanism="ONE")
    connection.handle(memoryview(request_frame(shake, 0))[4:])
    assert connection.least == 0
    assert connection.handle(memoryview(b"right"))
    assert connection.least == MIN_FRAME_BYTES
    assert connection.told[-1] == b"\0\0\0\7welcome"


def test_a_request_of_a_stranger_reaches_no_handler() -> None:
    house = House()
    _, connection = house.guest()
    request = request_frame(metadata.MetadataRequest(), 1)
    with pytest.raises(CloseConnection, match="API 3 before authentication"):
        connection.handle(memoryview(request)[4:])


METADATA = memoryview(request_frame(metadata.MetadataRequest(), 1))[4:]
HANDSHAKE = memoryview(request_frame(sasl_handshake.SaslHandshakeRequest(mechanism="ONE"), 1))[4:]


def test_a_session_without_an_end_costs_nothing_and_cannot_be_renewed() -> None:
    house = House()
    _, connection = house.guest()
    house.say(connection, b"right")
    assert connection.handle == connection.serves
    connection.handle(HANDSHAKE)
    assert connection.served == [17]


def test_a_session_that_is_over_ends_with_the_next_request() -> None:
    house = House(reauth_ms=5000)
    _, connection = house.guest()
    house.say(connection, b"right")
    house.clock.advance(5000)
    assert connection.handle(METADATA)
    house.clock.advance(1)
    with pytest.raises(CloseConnection) as closed:
        connection.handle(METADATA)
    assert closed.value.reason == "session_expired"
    assert connection.served == [3]


def test_a_session_goes_on_when_its_client_proves_its_name_again() -> None:
    house = House(reauth_ms=5000)
    _, connection = house.guest()
    house.say(connection, b"right")
    for _ in range(3):
        house.clock.advance(6000)
        assert house.say(connection, b"right")
        assert connection.limit == 9000
        assert connection.handle(METADATA)
    assert connection.served == [3, 3, 3]
    assert house.lobby.probes.authentications == {("ONE", "first"): 1, ("ONE", "again"): 3}


def test_a_session_is_renewed_once_a_second() -> None:
    """Sooner, the handshake goes to the handler, which refuses it; after the end, it closes."""
    house = House(reauth_ms=500)
    _, connection = house.guest()
    house.say(connection, b"right")
    house.say(connection, b"right")
    house.clock.advance(400)
    connection.handle(HANDSHAKE)
    assert connection.served == [17]
    house.clock.advance(400)
    with pytest.raises(CloseConnection, match="after the session's end"):
        connection.handle(HANDSHAKE)
    house.clock.advance(400)
    assert house.say(connection, b"right")


def test_a_renewal_that_fails_ends_the_connection_late() -> None:
    house = House(reauth_ms=5000)
    guest, connection = house.guest()
    house.say(connection, b"right")
    assert not house.say(connection, b"wrong")
    assert guest.is_busy
    house.timers[0].call()
    assert connection.ended == ["authentication_failed"]


def test_a_renewal_has_the_limits_of_guests_but_not_their_places() -> None:
    house = House(max_connections=10, reauth_ms=5000)
    guest, connection = house.guest()
    house.say(connection, b"right")
    house.clock.advance(60_000)
    connection.handle(HANDSHAKE)
    assert connection.limit == 500
    house.guest()
    assert connection.ended == []
    assert not guest.late_at(house.clock.monotonic())
    house.clock.advance(11_000)
    assert guest.late_at(house.clock.monotonic())


def test_an_end_that_comes_nearer_counts_for_open_sessions() -> None:
    house = House()
    _, connection = house.guest()
    house.say(connection, b"right")
    house.lobby.ends(ALICE, house.clock.now_ms() + 4000)
    house.lobby.ends(ALICE, house.clock.now_ms() + 9000)
    assert connection.handle(METADATA)
    house.clock.advance(4001)
    with pytest.raises(CloseConnection, match="after the session's end"):
        connection.handle(METADATA)
    house.lobby.removed(ALICE)
    assert connection.ended == ["credential_removed"]


def test_who_renewed_its_session_is_counted_once() -> None:
    house = House(reauth_ms=5000)
    guest, connection = house.guest()
    house.say(connection, b"right")
    house.say(connection, b"right")
    house.lobby.removed(ALICE)
    assert connection.ended == ["credential_removed"]
    guest.left()
    house.lobby.removed(ALICE)
    assert len(connection.ended) == 1
