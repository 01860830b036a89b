"""A proxy in front of a real S3 server: it makes requests fail, and may stop the world at one.

Signatures stay good: the store sees the host that the client has signed. Used from any thread.
"""

import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple

from tests.support.tier.fault_ways import REFUSALS, Way, spoilt
from tests.support.tier.s3_calls import Asked, Call, What, what_of

RESET = struct.pack("ii", 1, 0)
REFUSED_SECONDS = 0.5
DRIPPED_BYTES, DRIP_SECONDS = 10, 0.1
STORE_SECONDS = 60

Plan = Callable[[Call], Way | None]
"""Outcome of a call; None: nothing is done to it."""


class Around(NamedTuple):
    """Hooks at a call: before the store has it, and when it has done it."""

    before: Callable[[Asked], bool] = lambda asked: False
    after: Callable[[Asked], bool] = lambda asked: False
    """True: its connection is reset then."""


class Answer(NamedTuple):
    """The store's, whole."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class FaultProxy:
    """The proxy; `plan` and `around` may be changed at any time."""

    def __init__(self, store: str) -> None:
        """`store` is HOST:PORT. Nothing runs."""
        self.plan: Plan = lambda call: None
        self.around = Around()
        self.apart: Mapping[str, str] = {}
        """Topics whose steps have a word of their own from now on, and that word."""
        self.calls: list[Call] = []
        """In the order in which they came."""
        self.happened: list[tuple[Call, Way]] = []
        self._store = store
        self._counts: Counter[str] = Counter()
        self._gate = threading.Lock()
        self._live: set[socket.socket] = set()
        self._healed = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return f"127.0.0.1:{self.port}"

    def point_at(self, store: str) -> None:
        """Another store, at HOST:PORT, gets the requests from now on."""
        self._store = store

    def heal(self) -> None:
        """Nothing fails from now on; what hangs ends."""
        self.plan = lambda call: None
        self._healed.set()
        self._healed = threading.Event()

    def fail(self, plan: Plan) -> None:
        """Calls fail so from now on."""
        self.plan = plan

    def next(self, what: What) -> tuple[Asked, Way | None]:
        """The call that has come, and its outcome."""
        with self._gate:
            step = what.step(self.apart)
            self._counts[step] += 1
            call = Call(step, self._counts[step])
            self.calls.append(call)
            way = self.plan(call)
            if way is not None:
                self.happened.append((call, way))
        return Asked(call, what.topic), way

    def hang(self) -> None:
        """Until healed."""
        self._healed.wait()

    def ask_store(
        self, method: str, target: str, headers: list[tuple[str, str]], body: bytes
    ) -> Answer:
        """The store's answer. OSError."""
        host, _, port = self._store.partition(":")
        connection = HTTPConnection(host, int(port), timeout=STORE_SECONDS)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value)
            connection.endheaders(body)
            found = connection.getresponse()
            return Answer(found.status, found.getheaders(), found.read())
        finally:
            connection.close()

    # --- connections ---

    def serve(self) -> None:
        """Accepts connections until `close`. Runs on a thread of its own."""
        while True:
            try:
                found, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(found,), daemon=True).start()

    def close(self) -> None:
        """No connection is accepted any longer, and those that are there are reset."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._gate:
            live = list(self._live)
        for each in live:
            with suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                each.shutdown(socket.SHUT_RDWR)

    def refuse_for(self, seconds: float) -> None:
        """Resets all connections, and refuses new ones for a while. Blocks that long."""
        self.close()
        time.sleep(seconds)
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.serve, daemon=True).start()

    def _talk(self, found: socket.socket) -> None:
        with self._gate:
            self._live.add(found)
        try:
            with suppress(OSError):
                _Talk(found, self)
        finally:
            with self._gate:
                self._live.discard(found)
            found.close()


class _Talk(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    def __init__(self, found: socket.socket, proxy: FaultProxy) -> None:
        self._proxy = proxy
        self._method = ""
        super().__init__(found, found.getpeername(), None)  # type: ignore[arg-type]

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name there
        """Nothing."""

    def do_GET(self) -> None:
        """Any request."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked, way = self._proxy.next(what_of(self.command, self.path, headers, body))
        if self._proxy.around.before(asked):
            self._reset()
            return
        if not self._reaches_store(way):
            return
        sent = spoilt(body, is_text=False) if way is Way.OTHER_BYTES else body
        answer = self._proxy.ask_store(self.command, self.path, self.headers.items(), sent)
        if self._proxy.around.after(asked) or way is Way.LOST_ANSWER:
            self._reset()
            return
        self._give(answer, way)

    do_PUT = do_POST = do_DELETE = do_HEAD = do_GET  # noqa: N815 - the names there

    def _reaches_store(self, way: Way | None) -> bool:
        if way is not None and (refusal := REFUSALS.get(way)):
            headers = [*refusal.headers.items(), ("Content-Type", "application/xml")]
            self._give(Answer(refusal.status, headers, refusal.body), None)
            return False
        match way:
            case Way.REFUSED:
                self._proxy.refuse_for(REFUSED_SECONDS)
            case Way.RESET_BEFORE:
                self._reset()
            case Way.HANGS:
                self._proxy.hang()
                self._reset()
            case _:
                return True
        self.close_connection = True
        return False

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.close_connection = True

    def _give(self, answer: Answer, way: Way | None) -> None:
        body = answer.body
        if way is Way.OTHER_BYTES:
            body = spoilt(body, is_text=body.startswith(b"<"))
        if way is Way.HALF_ANSWER:
            self.close_connection = True
            if not body:
                self.wfile.write(b"HTTP/1.1 20")
                return
        self._give_head(answer, len(body))
        if way is Way.DRIPS:
            self._drip(body)
        else:
            self.wfile.write(body[: len(body) // 2] if way is Way.HALF_ANSWER else body)

    def _give_head(self, answer: Answer, size: int) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers:
            if name.lower() not in {"content-length", "transfer-encoding", "connection"}:
                self.send_header(name, value)
        if answer.status != 204:
            self.send_header("Content-Length", str(size))
        self.end_headers()

    def _drip(self, body: bytes) -> None:
        for at in range(DRIPPED_BYTES):
            self.wfile.write(body[at : at + 1])
            time.sleep(DRIP_SECONDS)
        self.wfile.write(body[DRIPPED_BYTES:])


@contextmanager
def fault_proxy(store: str) -> Iterator[FaultProxy]:
    """Start one in front of the store at HOST:PORT."""
    proxy = FaultProxy(store)
    threading.Thread(target=proxy.serve, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.heal()
        proxy.close()
