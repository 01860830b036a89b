"""From a frame to a response: header, route, decode, handle, encode.

What a client may get wrong ends its connection, as with Kafka (`CloseConnection`), except an
ApiVersions request of an unknown version, which is answered so that the client can try again. An
error that nobody expected is logged with an id, counted, and ends that connection only.
"""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from struct import Struct
from typing import Any, Protocol

from broker.runtime.connection_limits import UNLIMITED, CloseConnection
from broker.runtime.deferred import Deferred, OrderedAnswer
from broker.runtime.event_log import event
from broker.runtime.probes import BrokerProbes, Histogram
from broker.runtime.request_context import Peer, RequestContext
from broker.runtime.rights import REFUSED
from broker.server.route import Route
from broker.server.sender import Part
from protocol.apis.api_versions import ApiVersion, ApiVersionsResponse
from protocol.codec import encode_bytes, reader, writer
from protocol.errors import DecodeError, ErrorCode
from protocol.headers import (
    RequestHeader,
    UnsupportedVersion,
    parse_request_header,
    response_header,
    versions_of,
)

Parts = list[Part]
Answered = Callable[[Parts | None, CloseConnection | None], None]

FETCH, API_VERSIONS = 1, 18
LARGE_BYTES = 64 * 1024  # of a request whose answer may take long to encode
OBJECTS_BYTES = 10  # that a decoded request takes, for each byte of its frame
SIZE_BYTES = 4  # of a frame, not counted in it
PLAIN_HEADER_BYTES = 4  # a response's header without tagged fields


_PLAIN_HEAD = Struct(">ii")  # size, correlation id
_FLEXIBLE_HEAD = Struct(">iix")  # and no tagged fields


class Measured(Protocol):
    """Limits on what clients send. Called on the loop."""

    def handled(self, context: RequestContext[Any], size_bytes: int, seconds: float) -> None:
        """A request was handled, or will be answered later: what it costs its client."""

    def answering(self, context: RequestContext[Any], response: Any) -> None:
        """A request is being answered: the response may say how long the client should rest."""


class Call:
    """The prepared parts of one (API, version): its reader, its writer, its handler."""

    __slots__ = (
        "_head",
        "_write",
        "answer_type",
        "api",
        "asks",
        "handle",
        "latency",
        "read",
        "rights",
        "services",
        "unwaited",
        "version",
    )

    def __init__(
        self, route: Route, version: int, latency: Histogram, unwaited: Histogram | None
    ) -> None:
        """Generates the reader and writer when this pair is used for the first time.

        `latency` counts from request to answer, `unwaited` leaves out what the client asked to wait
        for.
        """
        self.api = route.api
        self.version = version
        self.handle = route.handle
        self.services = route.services
        self.read = reader(route.api.request, version, exact=False)
        self.latency = latency
        self.unwaited = unwaited
        self.answer_type = route.api.response
        self.rights = route.rights
        self.asks = route.rights | REFUSED
        self._write = writer(route.api.response, version)
        flexible = len(response_header(route.api, version, 0)) > PLAIN_HEADER_BYTES
        self._head = _FLEXIBLE_HEAD if flexible else _PLAIN_HEAD

    def encode(self, correlation_id: int, response: Any) -> Parts:
        """The frame of a response, in parts; the first one is bytes."""
        body: list[Any] = self._write(response)
        head = self._head
        size = head.size - SIZE_BYTES
        for part in body:
            size += len(part)
        body[0] = head.pack(size, correlation_id) + body[0]
        return body


class Pending:
    """A request that was taken and whose answer comes later."""

    __slots__ = (
        "_call",
        "_context",
        "_deferred",
        "_dispatcher",
        "_is_abandoned",
        "_listener",
        "_started",
        "waiting_bytes",
    )

    def __init__(
        self,
        dispatcher: "Dispatcher",
        call: Call,
        context: RequestContext[Any],
        deferred: Deferred[Any],
        started: float,
    ) -> None:
        """Made by the dispatcher."""
        self.waiting_bytes = 0
        """Memory that the dispatcher counts until there is an answer."""
        self._dispatcher = dispatcher
        self._call = call
        self._context = context
        self._deferred = deferred
        self._started = started
        self._is_abandoned = False

    def listen(self, listener: Answered) -> None:
        """`listener(parts, error)` is called once, at once if the answer is there already."""
        self._listener = listener
        self._deferred.listen(self._settled)

    @property
    def keeps_order(self) -> bool:
        """True when no later request of the connection is to be handled before this is answered."""
        return self._deferred.keeps_order

    def abandon(self) -> None:
        """The client is gone."""
        self._is_abandoned = True
        self._let_go()
        self._deferred.abandon()

    def hurry(self) -> None:
        """The client waits for an answer behind this one: a long poll ends with what there is."""
        self._deferred.hurry()

    def _settled(self, response: Any, error: BaseException | None) -> None:
        dispatcher, context = self._dispatcher, self._context
        self._let_go()
        parts = None
        if error is None:
            try:
                if self._deferred.is_long and response is not None:
                    dispatcher.encode_apart(self._call, context, response, self._encoded)
                    return
                parts = dispatcher.finish(self._call, context, response, self._started)
            except Exception as fault:  # noqa: BLE001 - becomes the end of one connection
                error = fault
        self._tell(parts, error)

    def _let_go(self) -> None:
        """The request is not needed any more."""
        self._dispatcher.waiting_bytes -= self.waiting_bytes
        self.waiting_bytes = 0

    def _encoded(self, encoded: "asyncio.Future[Parts]") -> None:
        """On the loop again."""
        if self._is_abandoned or encoded.cancelled():
            return
        error, parts = encoded.exception(), None
        if error is None:
            parts = encoded.result()
            self._dispatcher.measure(self._call, self._context, self._started)
        self._tell(parts, error)

    def _tell(self, parts: Parts | None, error: BaseException | None) -> None:
        header = self._context.header
        self._listener(parts, None if error is None else self._dispatcher.judge(error, header))


class Dispatcher:
    """The one entry for frames. `dispatch` is called for each, on the loop."""

    def __init__(
        self,
        routes: Mapping[int, Route],
        probes: BrokerProbes,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Handles requests by `routes`, by API key; coroutines of handlers run on `loop`."""
        self._routes = routes
        self._probes = probes
        self._loop = loop
        self._monotonic = probes.monotonic
        self._versions = versions_of(route.api for route in routes.values())
        self._calls: dict[tuple[int, int], Call] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.waiting_bytes = 0
        """Memory of the requests whose answers take long, in bytes."""
        self.most_waiting_bytes = UNLIMITED
        """Limit of that; the first one may be larger."""
        self.quotas: Measured | None = None
        """Measures every request while anybody has a limit."""

    def dispatch(self, frame: memoryview, peer: Peer) -> Parts | Pending | None:
        """Handles one request: the response, a promise of it, or None when none is wanted.

        Raises CloseConnection when the connection has to end.
        """
        header = None
        started = self._monotonic()
        try:
            header = parse_request_header(frame, self._versions)
            call = self._calls.get((header.api_key, header.api_version)) or self._call(header)
            request = call.read(frame, header.body_position)
            context = RequestContext(header, peer, call.services)
            response = call.handle(request, context)
            if self.quotas is not None:
                self.quotas.handled(context, len(frame), self._monotonic() - started)
            if type(response) is call.answer_type:
                return self.finish(call, context, response, started)
            if isinstance(response, Deferred):
                return self._promised(call, context, response, started, len(frame))
            if isinstance(response, Awaitable):
                deferred = self._begun(response, context, len(frame))
                return self._promised(call, context, deferred, started, len(frame))
            return self.finish(call, context, response, started)
        except UnsupportedVersion as unsupported:
            return self._unsupported(unsupported)
        except Exception as error:  # noqa: BLE001 - becomes the end of one connection
            raise self.judge(error, header) from None

    def _promised(
        self,
        call: Call,
        context: RequestContext[Any],
        deferred: Deferred[Any],
        started: float,
        frame_bytes: int,
    ) -> Pending:
        """The promise of an answer; one that takes long is counted until it is there."""
        pending = Pending(self, call, context, deferred, started)
        if deferred.is_long:
            try:
                self._check_room(frame_bytes)
            except CloseConnection:
                deferred.abandon()
                raise
            pending.waiting_bytes = frame_bytes * OBJECTS_BYTES
            self.waiting_bytes += pending.waiting_bytes
        return pending

    def _begun(
        self, awaitable: Awaitable[Any], context: RequestContext[Any], frame_bytes: int
    ) -> Deferred[Any]:
        """Runs a coroutine, unless it is to answer a large request for which there is no room.

        Coroutines take turns: what comes behind a large request waits for it.
        """
        is_long = frame_bytes > LARGE_BYTES
        if is_long:
            try:
                self._check_room(frame_bytes)
            except CloseConnection:
                if isinstance(awaitable, Coroutine):
                    awaitable.close()
                raise
        return self._run(awaitable, context, is_long=is_long)

    def _check_room(self, frame_bytes: int) -> None:
        """CloseConnection while too many requests wait for answers that take long."""
        size_bytes = frame_bytes * OBJECTS_BYTES
        if self.waiting_bytes and self.waiting_bytes + size_bytes > self.most_waiting_bytes:
            raise CloseConnection(
                "request_memory",
                f"{self.waiting_bytes} bytes of requests wait for answers that take long: another "
                f"{size_bytes} would be above their share of horolog.memory.max.bytes",
            )

    def finish(
        self, call: Call, context: RequestContext[Any], response: Any, started: float
    ) -> Parts | None:
        """Encodes and counts an answer.

        Raises CloseConnection for one that was made without asking for the rights it takes.
        """
        if context.peer.rights is not None and context.asked != call.rights:
            self._check_asked(call, context)
        parts = None
        if self.quotas is not None:
            self.quotas.answering(context, response)
        if response is not None:
            parts = call.encode(context.header.correlation_id, response)
        self.measure(call, context, started)
        return parts

    def encode_apart(
        self,
        call: Call,
        context: RequestContext[Any],
        response: Any,
        done: "Callable[[asyncio.Future[Parts]], None]",
    ) -> None:
        """As `finish`, on a thread, so that a large answer keeps nobody waiting; not measured."""
        if context.peer.rights is not None:
            self._check_asked(call, context)
        if self.quotas is not None:
            self.quotas.answering(context, response)
        number = context.header.correlation_id
        self._loop.run_in_executor(None, call.encode, number, response).add_done_callback(done)

    def _check_asked(self, call: Call, context: RequestContext[Any]) -> None:
        """Ends the connection of an answer that no right was asked for, but for an open API."""
        if not context.asked & call.asks and call.asks != REFUSED:
            self._probes.crashed(call.api.key)
            event("rights_not_asked", "error", api=call.api.name, api_version=call.version)
            raise CloseConnection("unchecked_handler", f"{call.api.name} asked for no right")

    def measure(self, call: Call, context: RequestContext[Any], started: float) -> None:
        """Counts an answer that is encoded."""
        seconds = self._monotonic() - started
        call.latency.observe(seconds)
        if call.unwaited is not None:
            call.unwaited.observe(max(0.0, seconds - context.waited_seconds))

    def judge(self, error: BaseException, header: RequestHeader | None) -> CloseConnection:
        """The consequence of an error in a request for its connection."""
        if isinstance(error, CloseConnection):
            return error
        if isinstance(error, DecodeError):
            name = f"request {header.api_key} v{header.api_version}" if header else "header"
            return CloseConnection("malformed", f"{name}: {error}")
        api_key = header.api_key if header else -1
        self._probes.crashed(api_key)
        number = event(
            "request_failed",
            "error",
            api_key=api_key,
            api_version=header.api_version if header else -1,
            error=repr(error),
            trace="".join(traceback.format_exception(error)),
        )
        return CloseConnection("internal_error", f"see event {number}")

    def _call(self, header: RequestHeader) -> Call:
        key, version = header.api_key, header.api_version
        unwaited = self._probes.fetch if key == FETCH else None
        call = Call(self._routes[key], version, self._probes.latency[key], unwaited)
        self._calls[key, version] = call
        return call

    def _unsupported(self, error: UnsupportedVersion) -> Parts:
        """ApiVersions of an unknown version gets the list in v0; anything else ends here."""
        route = self._routes.get(API_VERSIONS)
        if not error.is_api_versions or route is None:
            raise CloseConnection("unsupported_version", str(error))
        self._probes.refused(API_VERSIONS, ErrorCode.UNSUPPORTED_VERSION)
        listed = [
            ApiVersion(api_key=api.key, min_version=api.min_version, max_version=api.max_version)
            for api in (each.api for each in self._routes.values())
        ]
        response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=listed)
        body = response_header(route.api, 0, error.correlation_id) + encode_bytes(response, 0)
        return [len(body).to_bytes(4, "big") + body]

    def _run(
        self, awaitable: Awaitable[Any], context: RequestContext[Any], *, is_long: bool
    ) -> Deferred[Any]:
        """Lets a coroutine of a rare API run; its result settles the deferred."""
        deferred: Deferred[Any] = OrderedAnswer() if is_long else Deferred()

        async def settle() -> None:
            try:
                result = await awaitable
            except Exception as error:  # noqa: BLE001 - handed on
                deferred.fail(error)
            else:
                deferred.resolve(result)

        def gone() -> None:
            if context.ends_with_client:
                task.cancel()

        task = self._loop.create_task(settle())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        deferred.when_abandoned(gone)
        return deferred
