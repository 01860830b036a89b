"""The gate: only the legal path gets in, whatever else comes and in whatever order."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from scramp import ScramClient

from broker.runtime.connection_limits import CloseConnection
from broker.runtime.deferred import Deferred
from broker.security.credentials import CredentialKey, Mechanism
from broker.security.sasl.exchange import AuthenticationFailed, Exchange, Proof
from broker.security.sasl.gate import Dispatch, FailedStep, Gate, Reply, State
from broker.security.sasl.scram import ScramExchange
from broker.security.sasl.sessions import Lifetimes, Session
from protocol.apis import api_versions, metadata, sasl_authenticate, sasl_handshake
from protocol.codec import decode, encode_bytes
from protocol.errors import ErrorCode
from protocol.headers import request_header_bytes
from protocol.registry import api_of
from tests.support.disk.simenv import SeededRng
from tests.support.worlds.known_tokens import tokens_on
from tests.support.worlds.known_users import made, users_of

SHA_256 = Mechanism.SCRAM_SHA_256
KEY = CredentialKey("alice", SHA_256)
ALICE = Proof("alice", KEY)
USERS = users_of({KEY: made(SHA_256)})
TOKENS = tokens_on()
NOW_MS = 1_790_000_000_000
SCRAM = "SCRAM-SHA-256"


class OneToken:
    """A mechanism of the test: `right` gets in, later if the test says so, `bob` is another."""

    def __init__(self, later: "Deferred[bytes] | None" = None) -> None:
        self.proven: Proof | None = None
        self.later = later

    def step(self, token: bytes) -> "bytes | Deferred[bytes]":
        if self.later is not None:
            return self.later
        if token not in (b"right", b"bob", b"short"):
            raise AuthenticationFailed("no")
        ends_ms = NOW_MS + 1500 if token == b"short" else None
        self.proven = ALICE._replace(user="bob" if token == b"bob" else "alice", ends_ms=ends_ms)
        return b""


def gate_of(
    later: "Deferred[bytes] | None" = None, *, most_ms: int = 0, before: Session | None = None
) -> Gate:
    exchanges: dict[str, Callable[[str], Exchange]] = {
        SCRAM: lambda _: ScramExchange(SHA_256, USERS, TOKENS, SeededRng()),
        "ONE": lambda _: OneToken(later),
    }
    lifetimes = Lifetimes(lambda: NOW_MS, {"ONE": most_ms})
    return Gate(exchanges, "192.0.2.1", lifetimes, before)


def frame(message: Any, version: int, api: Any = None) -> memoryview:
    api = api or api_of(type(message))
    body = encode_bytes(message, version) if api.has(version) else b""
    return memoryview(request_header_bytes(api, version, 7, "test") + body)


def handshake(mechanism: str = "ONE", version: int = 1) -> memoryview:
    return frame(sasl_handshake.SaslHandshakeRequest(mechanism=mechanism), version)


def token(data: bytes, version: int = 2) -> memoryview:
    return frame(sasl_authenticate.SaslAuthenticateRequest(auth_bytes=data), version)


def versions(version: int = 3) -> memoryview:
    return frame(api_versions.ApiVersionsRequest(), version)


def read(api: Any, body: bytes, version: int) -> Any:
    tagged = api.is_flexible(version) and api is not api_versions.API
    return decode(api.response, version, memoryview(body), 5 if tagged else 4)


def authenticated(step: Any, version: int = 2) -> Any:
    assert isinstance(step, Reply | FailedStep)
    assert step.body is not None
    return read(sasl_authenticate.API, step.body, version)


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("asks_first", [True, False])
def test_the_legal_path(version: int, asks_first: bool) -> None:
    gate = gate_of()
    if asks_first:
        assert isinstance(gate.received(versions()), Dispatch)
        gate.versions_answered(0)
    reply = gate.received(handshake())
    assert isinstance(reply, Reply)
    answer = read(sasl_handshake.API, reply.body, 1)
    assert (answer.error_code, answer.mechanisms) == (0, [SCRAM, "ONE"])
    answer = authenticated(gate.received(token(b"right", version)), version)
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 0)
    assert (gate.state, gate.proven) == (State.DONE, ALICE)


def test_scram_through_the_gate() -> None:
    gate = gate_of()
    gate.received(handshake(SCRAM))
    client = ScramClient([SCRAM], "alice", "pencil")
    first = authenticated(gate.received(token(client.get_client_first().encode())))
    client.set_server_first(first.auth_bytes.decode())
    assert gate.proven is None
    last = authenticated(gate.received(token(client.get_client_final().encode())))
    client.set_server_final(last.auth_bytes.decode())
    assert gate.proven == ALICE


def test_tokens_without_headers_after_handshake_0() -> None:
    gate = gate_of()
    gate.received(handshake(version=0))
    assert gate.received(memoryview(b"right")) == Reply(b"")
    assert gate.proven == ALICE
    gate = gate_of()
    gate.received(handshake(version=0))
    step = gate.received(memoryview(b""))
    assert isinstance(step, FailedStep)
    assert step.body is None


def test_a_wrong_token_gets_the_code_and_the_text() -> None:
    gate = gate_of()
    gate.received(handshake())
    step = gate.received(token(b"wrong"))
    answer = authenticated(step)
    assert isinstance(step, FailedStep)
    assert (answer.error_code, answer.error_message) == (58, "no")
    assert (gate.state, gate.proven) == (State.FAILED, None)


def test_an_unknown_mechanism_hears_the_known_ones() -> None:
    gate = gate_of()
    step = gate.received(handshake("GSSAPI"))
    assert isinstance(step, FailedStep)
    assert step.body is not None
    answer = read(sasl_handshake.API, step.body, 1)
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == [SCRAM, "ONE"]


@pytest.mark.parametrize(
    "message",
    [api_versions.ApiVersionsRequest(), sasl_handshake.SaslHandshakeRequest(mechanism="ONE")],
)
def test_another_request_in_place_of_a_token_gets_its_own_error(message: Any) -> None:
    gate = gate_of()
    gate.received(handshake())
    step = gate.received(frame(message, 1))
    assert isinstance(step, FailedStep)
    assert step.body is not None
    assert read(api_of(type(message)), step.body, 1).error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_versions_may_be_asked_for_once_and_again_after_a_bad_request() -> None:
    gate = gate_of()
    assert isinstance(gate.received(versions(9)), Dispatch)
    gate.versions_answered(ErrorCode.UNSUPPORTED_VERSION)
    assert isinstance(gate.received(versions()), Dispatch)
    gate.versions_answered(0)
    with pytest.raises(CloseConnection):
        gate.received(versions())


@pytest.mark.parametrize(
    ("before", "strange"),
    [
        ([], frame(metadata.MetadataRequest(), 9)),
        ([], token(b"right")),
        ([], memoryview(bytes(20))),
        ([], memoryview(b"\x60\x82" + bytes(20))),
        ([], handshake("x" * 5000)),
        ([], handshake()[:-1]),
        ([handshake()], token(b"right")[:-3]),
        ([handshake()], frame(metadata.MetadataRequest(), 99, metadata.API)),
        ([handshake(), token(b"right")], token(b"right")),
        ([handshake(), token(b"wrong")], token(b"right")),
        ([handshake("NONE")], handshake()),
    ],
)
def test_what_is_closed_at_once(before: list[memoryview], strange: memoryview) -> None:
    gate = gate_of()
    for each in before:
        gate.received(each)
    proven = gate.proven
    with pytest.raises(CloseConnection):
        gate.received(strange)
    assert gate.proven == proven


def test_nothing_gets_in_while_a_token_is_judged() -> None:
    later: Deferred[bytes] = Deferred()
    gate = gate_of(later)
    gate.received(handshake())
    step = gate.received(token(b"right"))
    assert isinstance(step, Deferred)
    with pytest.raises(CloseConnection):
        gate.received(handshake())
    heard: list[Any] = []
    step.listen(lambda *each: heard.append(each))
    later.fail(AuthenticationFailed("too late"))
    assert isinstance(heard[0][0], FailedStep)
    assert gate.state is State.FAILED


@pytest.mark.parametrize(
    ("most_ms", "data", "lifetime_ms"),
    [
        (0, b"right", None), (9000, b"right", 9000), (0, b"short", 1500), (9000, b"short", 1500),
        (1000, b"short", 1000),
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_session_lasts_as_long_as_the_credential_and_the_setting_allow(
    most_ms: int, data: bytes, lifetime_ms: int | None, version: int
) -> None:
    gate = gate_of(most_ms=most_ms)
    gate.received(handshake())
    answer = authenticated(gate.received(token(data, version)), version)
    assert gate.lifetime_ms == lifetime_ms
    assert answer.session_lifetime_ms == ((lifetime_ms or 0) if version else 0)


def test_a_credential_that_ended_while_it_was_judged_has_no_time_left() -> None:
    proof = ALICE._replace(ends_ms=NOW_MS - 5)
    assert Lifetimes(lambda: NOW_MS, {"ONE": 9000}).of("ONE", proof) == 0


OF_ALICE = Session("ONE", "alice")


def test_a_session_is_renewed_by_the_same_user_and_mechanism() -> None:
    gate = gate_of(most_ms=9000, before=OF_ALICE)
    gate.received(handshake())
    answer = authenticated(gate.received(token(b"right")))
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 9000)
    assert (gate.state, gate.proven) == (State.DONE, ALICE)


def test_a_session_stays_with_its_user() -> None:
    gate = gate_of(before=OF_ALICE)
    gate.received(handshake())
    answer = authenticated(gate.received(token(b"bob")))
    text = "Cannot change principals during re-authentication from User.alice: User.bob"
    assert (answer.error_code, answer.error_message) == (58, text)
    assert (gate.state, gate.proven) == (State.FAILED, None)


def test_a_session_stays_with_its_mechanism() -> None:
    """Kafka takes the handshake, then closes without an answer."""
    gate = gate_of(before=OF_ALICE)
    reply = gate.received(handshake(SCRAM))
    assert isinstance(reply, Reply)
    assert read(sasl_handshake.API, reply.body, 1).error_code == 0
    step = gate.received(token(b"right"))
    assert isinstance(step, FailedStep)
    assert (step.body, step.code) == (None, 58)
    assert gate.proven is None


def test_a_renewal_begins_with_nothing_but_a_handshake() -> None:
    for each in (versions(), token(b"right"), frame(metadata.MetadataRequest(), 9)):
        with pytest.raises(CloseConnection):
            gate_of(before=OF_ALICE).received(each)


def test_the_text_of_wrong_credentials_says_when_they_came() -> None:
    for before, when in ((None, "authentication"), (Session(SCRAM, "alice"), "re-authentication")):
        gate = gate_of(before=before)
        gate.received(handshake(SCRAM))
        answer = authenticated(gate.received(token(b"nonsense")))
        assert answer.error_message == (
            f"Authentication failed during {when} due to invalid credentials with SASL "
            f"mechanism {SCRAM}"
        )


def test_random_orders() -> None:
    """A model with four letters: v(ersions), s(hake), r(ight), w(rong)."""
    rng = random.Random(5)
    frames = {
        "v": versions(), "V": versions(42), "s": handshake(), "z": handshake(version=0),
        "g": handshake("GSSAPI"), "r": token(b"right"), "w": token(b"wrong"),
        "m": frame(metadata.MetadataRequest(), 9), "x": memoryview(bytes(range(30))),
        "R": memoryview(b"right"), "e": memoryview(b""),
    }  # fmt: skip
    let_in = 0
    for _ in range(100_000):
        letters = "".join(rng.choices("vVszgrwmxRe", (4, 1, 6, 2, 1, 6, 1, 1, 1, 3, 1), k=5))
        gate, path, state = gate_of(), "", "start"
        for letter in letters:
            state = _expected(state, letter)
            try:
                step = gate.received(frames[letter])
            except CloseConnection:
                assert state == "closed", letters
                break
            if isinstance(step, Dispatch):
                gate.versions_answered(0 if letter == "v" else 35)
            path += letter
            assert (gate.proven is not None) == (state == "done"), letters
            assert isinstance(step, FailedStep) == (state == "failed"), letters
            if state in ("done", "failed"):
                break
        let_in += gate.proven is not None
        if gate.proven is not None:
            assert path.replace("V", "") in ("sr", "vsr", "zR", "vzR"), letters
    assert 1_000 < let_in < 50_000


def _expected(state: str, letter: str) -> str:
    if state in ("start", "versions"):
        rest = {"s": "tokens", "z": "raw", "g": "failed"}
        if state == "start":
            rest |= {"v": "versions", "V": "start"}
        return rest.get(letter, "closed")
    if state == "raw":
        return "done" if letter == "R" else "failed"
    if letter == "r":
        return "done"
    return "failed" if letter in "wvszgm" else "closed"
