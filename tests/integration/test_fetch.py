"""A document of another server: bounded in time and size, and from no other place."""

import asyncio
import gzip
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from broker.http.port import fetch as fetching
from broker.http.port.fetch import FetchFailed, fetch
from tests.support.clients.certificates import Authority
from tests.support.clients.issuer import Issuer, IssuerServer, send

MOST = 1024 * 1024


@pytest.fixture(autouse=True)
def _impatient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where the server keeps us waiting: a busy machine may take longer for the others."""
    if any(slow in request.node.name for slow in ("hangs", "drips")):
        monkeypatch.setattr(fetching, "SECONDS", 0.5)


@pytest.fixture
def server() -> Iterator[IssuerServer]:
    with IssuerServer(Issuer()) as server:
        yield server


async def test_a_document(server: IssuerServer) -> None:
    body = b"x" * MOST
    server.answers["/x"] = lambda request: send(request, body)
    assert await fetch(f"{server.url}/x", MOST, None) == body


async def test_a_certificate_is_checked_by_the_authorities_that_are_named(tmp_path: Path) -> None:
    authority = Authority()
    trusted = ssl.create_default_context(cadata=authority.pem)
    with IssuerServer(Issuer(), authority.server().write(tmp_path / "server.pem")) as server:
        assert await fetch(f"{server.url}/keys", MOST, trusted)
        with pytest.raises(FetchFailed, match="certificate"):
            await fetch(f"{server.url}/keys", MOST, None)
        other = ssl.create_default_context(cadata=Authority("another").pem)
        with pytest.raises(FetchFailed, match="certificate"):
            await fetch(f"{server.url}/keys", MOST, other)


def _drips(request: BaseHTTPRequestHandler) -> None:
    """A byte now and then."""
    request.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(100):
        request.wfile.write(b"X-%d: y\r\n" % number)
        request.wfile.flush()
        time.sleep(0.02)


def _without_end(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    for _ in range(10_000):
        request.wfile.write(b"x" * 100_000)


def _long_header(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 10_000_000)


MISBEHAVING: dict[str, tuple[Callable[[BaseHTTPRequestHandler], None], str]] = {
    "hangs": (lambda _: threading.Event().wait(1) and None, "no whole answer within"),
    "drips": (_drips, "no whole answer within"),
    "is large": (lambda request: send(request, b"x" * (MOST + 1)), "more than 1048576 bytes"),
    "has no end": (_without_end, "more than 1048576 bytes"),
    "has a long header": (_long_header, "more than 8190 bytes"),
    "fails": (lambda request: send(request, b"{}", 500), "status 500"),
    "is no HTTP": (lambda request: request.wfile.write(b"\x16\x03\x01\x02\x00"), "HTTP"),
    "says nothing": (lambda _: None, "ClientError|ServerDisconnected"),
    "is compressed": (
        lambda request: send(request, gzip.compress(bytes(9**8)), Content_Encoding="gzip"),
        "compressed",
    ),
    "is elsewhere": (
        lambda request: send(request, b"", 302, Location="http://169.254.169.254/keys"),
        "redirect to another server",
    ),
    "is on another port": (
        lambda request: send(request, b"", 307, Location="http://localhost:1/keys"),
        "redirect to another server",
    ),
    "is a file": (
        lambda request: send(request, b"", 301, Location="file:///etc/passwd"),
        "redirect to another server",
    ),
    "goes round": (lambda request: send(request, b"", 302, Location="/x"), "more than 3 redirects"),
    "is nowhere": (lambda request: send(request, b"", 302), "more than 3 redirects"),
}


@pytest.mark.parametrize("name", MISBEHAVING)
async def test_a_server_that_misbehaves(server: IssuerServer, name: str) -> None:
    server.answers["/x"], text = MISBEHAVING[name]
    began = time.monotonic()
    with pytest.raises(FetchFailed, match=text) as failed:
        await fetch(f"{server.url}/x", MOST, None)
    assert time.monotonic() - began < 5
    assert len(str(failed.value)) < 500
    await asyncio.sleep(0)


async def test_a_redirect_on_the_same_server_is_followed(server: IssuerServer) -> None:
    server.answers["/x"] = lambda request: send(request, b"", 308, Location="/keys")
    assert await fetch(f"{server.url}/x", MOST, None)


async def test_nobody_listens() -> None:
    with pytest.raises(FetchFailed, match="Connect"):
        await fetch("http://127.0.0.1:1/keys", MOST, None)
