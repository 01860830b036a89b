"""Random log-ins at a gate: requests in any order, sound and damaged tokens, for as long as wanted.

Who gets in is judged by what was sent, not by what the gate says of it.
"""

import base64
import binascii
import random
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, cast

from broker.runtime.connection_limits import CloseConnection
from broker.runtime.deferred import Deferred
from broker.runtime.lanes import DiskLane
from broker.security.credentials import CredentialKey, Mechanism
from broker.security.sasl.exchange import Exchange
from broker.security.sasl.gate import Dispatch, FailedStep, Gate, Reply, State, Step
from broker.security.sasl.oauthbearer import OauthExchange
from broker.security.sasl.plain import Passwords, PlainExchange
from broker.security.sasl.scram import ScramExchange
from broker.security.sasl.sessions import Lifetimes, Session
from protocol.apis.sasl_authenticate import SaslAuthenticateResponse
from protocol.codec import decode
from tests.support.disk.simenv import SeededRng, SimClock
from tests.support.logins import clients
from tests.support.logins.bearer import Bearer
from tests.support.worlds.known_tokens import tokens_on
from tests.support.worlds.known_users import made, users_of

HOST = "192.0.2.1"
PLAIN = "PLAIN"
BEARER = "OAUTHBEARER"
OF_ONE_TOKEN = (PLAIN, BEARER)
SCRAM = {each.sasl_name: each for each in Mechanism}
PROVIDER = Bearer()
MOST_FRAMES = 7
MOST_ANSWER_BYTES = 70_000
NAMES = (clients.USER, clients.USER, clients.USER, "bob", "", "al=2Cice", "ali\0ce", "é" * 300)
UNKNOWN = "GSSAPI"


class FindingError(Exception):
    """The gate broke a promise."""


class SameThread:
    """A lane whose work is done when it is given."""

    def run(self, work: Callable[..., Any], *args: object) -> Future[Any]:
        """A future that is settled."""
        future: Future[Any] = Future()
        future.set_result(work(*args))
        return future


class Walk:
    """Connections, one after the other, by one seed."""

    def __init__(self, seed: int) -> None:
        """The broker has one user, with both mechanisms of SCRAM."""
        self.rng = random.Random(seed)
        self.steps = 0
        self.let_in = 0
        rows = {
            CredentialKey(clients.USER, each): made(each, clients.PASSWORD.decode(), iterations=1)
            for each in Mechanism
        }
        users, tokens, rng = users_of(rows), tokens_on(), SeededRng(seed)
        passwords = Passwords(users, cast("DiskLane", SameThread()), rng, SimClock().monotonic)

        def scram(mechanism: Mechanism) -> Callable[[str], Exchange]:
            return lambda _: ScramExchange(mechanism, users, tokens, rng)

        self.exchanges: dict[str, Callable[[str], Exchange]] = {
            **{name: scram(mechanism) for name, mechanism in SCRAM.items()},
            PLAIN: lambda host: PlainExchange(passwords, host),
            BEARER: lambda _: OauthExchange(PROVIDER.holder),
        }
        self.kept: list[bytes] = [b""]
        """Tokens of earlier connections, to be sent again."""

    def walk(self, steps: int) -> None:
        """So many frames. Raises FindingError, and whatever the gate lets out."""
        while self.steps < steps:
            self._connection()

    def _connection(self) -> None:
        before = self._session()
        lifetimes = Lifetimes(lambda: 0, {PLAIN: 5000})
        gate, visit = Gate(self.exchanges, HOST, lifetimes, before), Visit(before)
        for _ in range(MOST_FRAMES):
            sent = self._frame(gate, visit)
            self.steps += 1
            try:
                step = _settled(gate.received(memoryview(sent)))
            except CloseConnection:
                _expect(gate.proven is None, "a connection that is closed has proved something")
                return
            if isinstance(step, Dispatch):
                gate.versions_answered(self.rng.choice((0, 0, 0, 35)))
                continue
            visit.heard(gate, step)
            if isinstance(step, FailedStep):
                _expect(gate.state is State.FAILED, "a failure goes on")
                return
            if gate.proven is not None:
                self.let_in += 1
                return

    def _session(self) -> Session | None:
        """The session that the client wants to go on with; mostly it has none."""
        if self.rng.random() < 0.8:
            return None
        names = (clients.USER, clients.USER, "bob")
        return Session(self.rng.choice((PLAIN, BEARER, *SCRAM)), self.rng.choice(names))

    def _frame(self, gate: Gate, visit: "Visit") -> bytes:
        """The next request: mostly the one that is due, often damaged or another one."""
        if self.rng.random() < 0.1:
            return self._stray(visit)
        if gate.state is State.START and self.rng.random() < 0.5:
            return clients.versions(self.rng.choice((0, 3, 4, 42)))
        if gate.state in (State.START, State.KNOWS_VERSIONS):
            mechanism = self.rng.choice((PLAIN, BEARER, *SCRAM, *SCRAM, UNKNOWN))
            return self._maybe_damaged(clients.handshake(mechanism, self.rng.randint(0, 1)), 0.1)
        token = self._token(gate, visit)
        visit.tokens.append(token)
        if gate.state is State.RAW_TOKENS:
            return token
        return self._frame_of(token, visit)

    def _frame_of(self, token: bytes, visit: "Visit") -> bytes:
        framed = clients.authenticate(token, self.rng.randint(0, 2))
        changed = self._maybe_damaged(framed, 0.05)
        if changed != framed:
            visit.is_damaged = True
        return changed

    def _token(self, gate: Gate, visit: "Visit") -> bytes:
        if self.rng.random() < 0.05:
            return self.rng.choice(self.kept)
        token = self._sound_token(gate, visit)
        if self.rng.random() < 0.01:
            self.kept = [*self.kept[-50:], token]
        return self._maybe_damaged(token, 0.2)

    def _sound_token(self, gate: Gate, visit: "Visit") -> bytes:
        password = self.rng.choice((clients.PASSWORD, clients.PASSWORD, b"wrong", b""))
        name = self.rng.choice(NAMES)
        if gate.mechanism == PLAIN:
            return clients.plain(name, password, self.rng.choice(("", "", clients.USER, "root")))
        if gate.mechanism == BEARER:
            return b"\x01" if visit.tokens else PROVIDER.message(self.rng)
        if not visit.tokens or not visit.challenge:
            return clients.scram_first(name, f"{self.rng.getrandbits(96):024x}")
        mechanism = SCRAM[gate.mechanism]
        return clients.scram_final(mechanism, password, visit.tokens[0], visit.challenge)

    def _stray(self, visit: "Visit") -> bytes:
        match self.rng.randrange(5):
            case 0:
                return self.rng.randbytes(self.rng.randrange(200))
            case 1:
                return clients.other_request()
            case 2:
                return clients.versions()
            case 3:
                return clients.handshake(self.rng.choice(("", "x" * 2000, PLAIN)))
            case _:
                visit.is_damaged = True  # a token that is not due, or is read as another one
                return clients.authenticate(self.rng.choice(self.kept))

    def _maybe_damaged(self, data: bytes, share: float) -> bytes:
        return clients.damaged(self.rng, data) if self.rng.random() < share else data


class Visit:
    """Tokens of one connection, both ways."""

    def __init__(self, before: Session | None) -> None:
        self.before = before
        self.tokens: list[bytes] = []
        self.challenge = b""
        self.is_damaged = False
        """True when a frame around a token was damaged: what the gate read is not known."""

    def heard(self, gate: Gate, step: Reply | FailedStep) -> None:
        """Raises FindingError when a client was let in without a proof, or kept out with one."""
        body = step.body or b""
        _expect(len(body) < MOST_ANSWER_BYTES, f"an answer of {len(body)} bytes")
        if isinstance(step, FailedStep) or gate.mechanism in OF_ONE_TOKEN or self.challenge:
            self._judge(gate, isinstance(step, FailedStep))
        elif self.tokens:
            self.challenge = _token_of(gate.state, body)

    def _judge(self, gate: Gate, is_refused: bool) -> None:
        if self.is_damaged or not self.tokens:
            return
        proves = self._proves(gate.mechanism)
        tokens = [each.hex() for each in self.tokens]
        may = proves or (gate.mechanism == BEARER and PROVIDER.may_prove(self.tokens[-1]))
        _expect(gate.proven is None or may, f"{gate.mechanism} let {tokens} in")
        _expect(gate.proven is None or gate.proven.user == clients.USER, f"as {gate.proven}")
        wanted = 1 if gate.mechanism in OF_ONE_TOKEN else 2
        is_over = len(self.tokens) == wanted
        _expect(not (is_refused and is_over and proves), f"{gate.mechanism} kept {tokens} out")

    def _proves(self, mechanism: str) -> bool:
        """True when these tokens must let the client in, with that mechanism."""
        if self.before not in (None, Session(mechanism, clients.USER)):
            return False
        if mechanism == BEARER:
            return PROVIDER.proves(self.tokens[0]) and len(self.tokens) == 1
        if mechanism == PLAIN:
            sound = {clients.plain(authzid=each) for each in ("", clients.USER)}
            return self.tokens[-1] in sound
        first, final = self.tokens[0], self.tokens[-1]
        if not self.challenge or not first.startswith(f"n,,n={clients.USER},r=".encode()):
            return False
        wanted = clients.scram_final(SCRAM[mechanism], clients.PASSWORD, first, self.challenge)
        return _means(final) == _means(wanted)


def _means(final: bytes) -> tuple[bytes, bytes]:
    """A last token of SCRAM with its proof in binary: base64 has more than one way to write it."""
    signed, _, proof = final.rpartition(b",p=")
    try:
        return signed, base64.b64decode(proof, validate=True)
    except binascii.Error:
        return final, b""


def _token_of(state: State, body: bytes) -> bytes:
    """The broker's token in an answer to SaslAuthenticate of any version."""
    if state is State.RAW_TOKENS:
        return body
    for version, header_bytes in ((2, 5), (1, 4), (0, 4)):
        try:
            answer: Any = decode(SaslAuthenticateResponse, version, memoryview(body), header_bytes)
        except Exception:  # noqa: BLE001 - of another version
            continue
        if answer.auth_bytes.startswith(b"r="):
            return bytes(answer.auth_bytes)
    return b""


def _settled(step: Step | Deferred[Step]) -> Step:
    if not isinstance(step, Deferred):
        return step
    heard: list[tuple[Step | None, BaseException | None]] = []
    step.listen(lambda value, error: heard.append((value, error)))
    _expect(len(heard) == 1, "a token is judged once")
    value, error = heard[0]
    if error is not None:
        raise error
    assert value is not None
    return value


def _expect(holds: bool, promise: str) -> None:
    if not holds:
        raise FindingError(promise)
