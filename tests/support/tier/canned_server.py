"""An HTTP server that gives one answer to every request: what stores and proxies say when ill."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Seen(NamedTuple):
    """A request."""

    method: str
    path: str
    headers: dict[str, str]
    """By names in lower case."""
    body: bytes


class Canned:
    """The answer, which tests change, and the requests so far."""

    def __init__(self) -> None:
        """Answers 200 without a body."""
        self.address = ""
        self.status = 200
        self.body = b""
        self.says_bytes: int | None = None
        """Content-Length, where it is not that of the body."""
        self.headers: dict[str, str] = {}
        self.answers_never = False
        self.seen: list[Seen] = []
        self._over = threading.Event()

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        """From now on this is the answer; nothing was seen."""
        self.status, self.body, self.headers = status, body, headers
        self.seen.clear()

    def end(self) -> None:
        """Requests that wait for nothing end."""
        self._over.set()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """One request, as the server has it."""
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.seen.append(Seen(request.command, request.path, headers, body))
        if self.answers_never:
            self._over.wait()
            return
        request.send_response(self.status)
        size = len(self.body) if self.says_bytes is None else self.says_bytes
        always = {
            "Content-Length": str(size),
            "Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT",
            "ETag": '"0"',
        }
        for name, value in {**always, **self.headers}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(self.body)
        request.close_connection = self.says_bytes is not None


@contextmanager
def canned_server(tls: ssl.SSLContext | None = None) -> Iterator[Canned]:
    """Start one on a free port of this machine."""
    canned = Canned()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name there
            """Nothing."""

        def do_GET(self) -> None:
            """Any."""
            canned.answer(self)

        do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815 - the names there

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        canned.address = f"127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield canned
        finally:
            canned.end()
            server.shutdown()
            thread.join()
