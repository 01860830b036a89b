"""The gate of a SASL listener: what a client may send until it has proven who it is.

A state machine without a clock and without a socket: frames in, steps out. It stands before the
dispatcher; ApiVersions alone is let through before the proof, once. States, answers and texts are
Kafka's (SaslServerAuthenticator); what is not allowed ends the connection.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from typing import Any

from broker.runtime.connection_limits import CloseConnection
from broker.runtime.deferred import Deferred
from broker.runtime.principals import USER
from broker.security.sasl.exchange import (
    AuthenticationFailed,
    Exchange,
    InvalidCredentials,
    Proof,
)
from broker.security.sasl.sessions import Lifetimes, Session
from protocol.api import Api
from protocol.apis import api_versions, sasl_authenticate, sasl_handshake
from protocol.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from protocol.codec import encode_bytes, reader
from protocol.errors import DecodeError, ErrorCode
from protocol.headers import (
    RequestHeader,
    UnsupportedVersion,
    parse_request_header,
    response_header,
    versions_of,
)
from protocol.registry import apis

SMALL_BYTES = 4096  # of ApiVersions and SaslHandshake

_VERSIONS = cache(lambda: versions_of(apis().values()))

Exchanges = Mapping[str, Callable[[str], Exchange]]


class State(Enum):
    """The state of a connection."""

    START = auto()
    KNOWS_VERSIONS = auto()
    TOKENS = auto()
    RAW_TOKENS = auto()
    WAITING = auto()
    OTHER_MECHANISM = auto()
    DONE = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class Reply:
    """A frame for the client, without its length; it may go on."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The frame is for the dispatcher; `Gate.versions_answered` is to hear the answer's code."""


@dataclass(frozen=True, slots=True)
class FailedStep:
    """The client has failed: after a delay it gets `body`, if any, and the connection ends."""

    api_key: int
    code: int
    body: bytes | None
    detail: str


Step = Reply | Dispatch | FailedStep


class Gate:
    """The gate of one connection, or of one re-authentication. Used from the event loop."""

    __slots__ = (
        "_before",
        "_exchange",
        "_exchanges",
        "_host",
        "_lifetimes",
        "lifetime_ms",
        "mechanism",
        "proven",
        "state",
    )

    def __init__(
        self,
        exchanges: Exchanges,
        host: str,
        lifetimes: Lifetimes,
        before: Session | None = None,
    ) -> None:
        """Nothing was received. `exchanges` begins one with a client at an address, `host`.

        It is by the mechanism's name. `before` is the session that the client wants to go on, when
        it has one: only SaslHandshake may begin that.
        """
        self._host = host
        self.state = State.KNOWS_VERSIONS if before else State.START
        self.proven: Proof | None = None
        self.lifetime_ms: int | None = None
        """Once it is proven, for how long that counts; None: as long as the connection."""
        self.mechanism = ""
        self._lifetimes = lifetimes
        self._before = before
        self._exchanges = exchanges
        self._exchange: Exchange | None = None

    def received(self, frame: memoryview) -> Step | Deferred[Step]:
        """The consequence of a frame. Raises CloseConnection: at once, without an answer.

        After a Deferred, or a FailedStep, nothing more may come in until it is settled.
        """
        if self.state is State.RAW_TOKENS:
            return self._token(bytes(frame), _RawAnswers())
        if self.state is State.OTHER_MECHANISM:
            return self._other_mechanism()
        try:
            header = parse_request_header(frame, _VERSIONS())
        except UnsupportedVersion as error:
            return self._unsupported(error)
        except DecodeError as error:
            raise CloseConnection("malformed", f"header: {error}") from None
        if self.state is State.TOKENS:
            return self._authenticate(header, frame)
        return self._begin(header, frame)

    @property
    def claimed(self) -> str:
        """The name that the client gave, proven or not; empty before it gave one."""
        return "" if self._exchange is None else self._exchange.claimed

    def versions_answered(self, code: int) -> None:
        """The dispatcher answered ApiVersions with this error code."""
        if code == ErrorCode.NONE:
            self.state = State.KNOWS_VERSIONS

    def _begin(self, header: RequestHeader, frame: memoryview) -> Step:
        """ApiVersions, unless there was one, or SaslHandshake."""
        is_handshake = header.api_key == sasl_handshake.API.key
        is_versions = header.api_key == api_versions.API.key and self.state is State.START
        if self.state not in (State.START, State.KNOWS_VERSIONS):
            raise CloseConnection("illegal_sasl_state", f"a request in state {self.state.name}")
        if not (is_handshake or is_versions):
            raise _unexpected(header.api_key)
        if len(frame) > SMALL_BYTES:
            raise CloseConnection("frame_size", f"{len(frame)} bytes before authentication")
        return self._handshake(header, frame) if is_handshake else Dispatch()

    def _handshake(self, header: RequestHeader, frame: memoryview) -> Step:
        request: SaslHandshakeRequest = _read(sasl_handshake.API, header, frame)
        begin = self._exchanges.get(request.mechanism)
        answer = SaslHandshakeResponse(mechanisms=list(self._exchanges))
        if begin is None:
            self.state = State.FAILED
            answer.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            detail = f"mechanism {request.mechanism:.40} is not enabled"
            body = None  # of a session, as in Kafka
            if self._before is None:
                body = _answer(sasl_handshake.API, header, answer)
            return FailedStep(header.api_key, answer.error_code, body, detail)
        self.mechanism = request.mechanism
        if self._before is not None and self._before.mechanism != request.mechanism:
            self.state = State.OTHER_MECHANISM
        else:
            self._exchange = begin(self._host)
            self.state = State.TOKENS if header.api_version else State.RAW_TOKENS
        return Reply(_answer(sasl_handshake.API, header, answer))

    def _other_mechanism(self) -> FailedStep:
        """Kafka takes the handshake and answers nothing that follows."""
        assert self._before is not None
        self.state = State.FAILED
        detail = f"{self.mechanism} in a session that was begun by {self._before.mechanism}"
        code = ErrorCode.SASL_AUTHENTICATION_FAILED
        return FailedStep(sasl_authenticate.API.key, code, None, detail)

    def _authenticate(self, header: RequestHeader, frame: memoryview) -> Step | Deferred[Step]:
        if header.api_key != sasl_authenticate.API.key:
            return self._not_a_token(header)
        request: SaslAuthenticateRequest = _read(sasl_authenticate.API, header, frame)
        return self._token(bytes(request.auth_bytes), _FramedAnswers(header))

    def _not_a_token(self, header: RequestHeader) -> FailedStep:
        """Kafka's answer: the error of that API, of those that have one for a whole request."""
        api, code = apis()[header.api_key], ErrorCode.ILLEGAL_SASL_STATE
        self.state = State.FAILED
        has_error = hasattr(api.response, "error_code")
        body = _answer(api, header, api.response(error_code=code)) if has_error else None
        return FailedStep(api.key, code, body, f"{api.name} in place of a token")

    def _token(self, token: bytes, answers: "_Answers") -> Step | Deferred[Step]:
        assert self._exchange is not None
        try:
            answer = self._exchange.step(token)
        except AuthenticationFailed as error:
            return self._refused(error, answers)
        if isinstance(answer, bytes):
            return self._accepted(answer, answers)
        return self._later(answer, answers)

    def _later(self, answer: Deferred[bytes], answers: "_Answers") -> Deferred[Step]:
        before, self.state = self.state, State.WAITING
        step: Deferred[Step] = Deferred()

        def settled(token: bytes | None, error: BaseException | None) -> None:
            self.state = before
            if isinstance(error, AuthenticationFailed):
                step.resolve(self._refused(error, answers))
            elif error is not None:
                self.state = State.FAILED
                step.fail(error)
            else:
                step.resolve(self._accepted(token or b"", answers))

        answer.listen(settled)
        return step

    def _accepted(self, token: bytes, answers: "_Answers") -> Reply | FailedStep:
        assert self._exchange is not None
        proof, before = self._exchange.proven, self._before
        if proof is None:
            return Reply(answers.token(token, 0))
        if before is not None and before.user != proof.user:
            text = (
                "Cannot change principals during re-authentication from "
                f"{USER}.{before.user}: {USER}.{proof.user}"
            )
            return self._refused(AuthenticationFailed(text), answers)
        self.proven, self.state = proof, State.DONE
        self.lifetime_ms = self._lifetimes.of(self.mechanism, proof)
        return Reply(answers.token(token, self.lifetime_ms or 0))

    def _refused(self, error: AuthenticationFailed, answers: "_Answers") -> FailedStep:
        self.state = State.FAILED
        code = ErrorCode.SASL_AUTHENTICATION_FAILED
        text = self._generic() if isinstance(error, InvalidCredentials) else str(error)
        detail = error.detail or text
        return FailedStep(sasl_authenticate.API.key, code, answers.failure(text), detail)

    def _generic(self) -> str:
        """Kafka's text of all that a mechanism does not tell apart."""
        what = "re-authentication" if self._before is not None else "authentication"
        return (
            f"Authentication failed during {what} due to invalid credentials with SASL "
            f"mechanism {self.mechanism}"
        )

    def _unsupported(self, error: UnsupportedVersion) -> Step:
        if error.is_api_versions and self.state is State.START:
            return Dispatch()
        raise CloseConnection("unsupported_version", str(error)) from None


class _RawAnswers:
    """Answers after SaslHandshake 0: tokens without headers, and none for a failure."""

    def token(self, token: bytes, _: int) -> bytes:
        return token

    def failure(self, _: str) -> bytes | None:
        return None


@dataclass(frozen=True, slots=True)
class _FramedAnswers:
    """Answers to SaslAuthenticate."""

    header: RequestHeader

    def token(self, token: bytes, lifetime_ms: int) -> bytes:
        response = SaslAuthenticateResponse(
            error_message="", auth_bytes=token, session_lifetime_ms=lifetime_ms
        )
        return self._answer(response)

    def failure(self, text: str) -> bytes | None:
        code = ErrorCode.SASL_AUTHENTICATION_FAILED
        return self._answer(SaslAuthenticateResponse(error_code=code, error_message=text))

    def _answer(self, response: SaslAuthenticateResponse) -> bytes:
        return _answer(sasl_authenticate.API, self.header, response)


_Answers = _RawAnswers | _FramedAnswers


def _read(api: Api, header: RequestHeader, frame: memoryview) -> Any:
    try:
        return reader(api.request, header.api_version, exact=False)(frame, header.body_position)
    except DecodeError as error:
        raise CloseConnection("malformed", f"{api.name}: {error}") from None


def _answer(api: Api, header: RequestHeader, response: object) -> bytes:
    version = header.api_version
    return response_header(api, version, header.correlation_id) + encode_bytes(response, version)


def _unexpected(api_key: int) -> CloseConnection:
    return CloseConnection("illegal_sasl_state", f"API {api_key} before authentication")
