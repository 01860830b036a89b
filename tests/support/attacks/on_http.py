"""Attacks on the HTTP port."""

import contextlib

from tests.support.attacks.on_tls import hold, shower
from tests.support.attacks.target import Attack, Target, connect

HOST = b"Host: localhost\r\n"


def half_requests(target: Target) -> int:
    """Requests whose headers never end."""
    return hold(target, target.http, b"GET / HTTP/1.1\r\n" + HOST)


def wrong_tokens(target: Target) -> int:
    """Changes with tokens that are guessed."""
    request = (
        b"POST /api/clock/verify HTTP/1.1\r\n" + HOST + b"Authorization: Bearer guess\r\n"
        b"Content-Length: 0\r\nConnection: close\r\n\r\n"
    )
    return shower(target, target.http, request)


def scrapes(target: Target) -> int:
    """Metrics, as fast as they come."""
    return shower(
        target, target.http, b"GET /metrics HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    )


def long_headers(target: Target) -> int:
    """A MiB of headers."""
    headers = (b"X: " + b"x" * 1000 + b"\r\n") * 1000
    return shower(target, target.http, b"GET / HTTP/1.1\r\n" + headers)


def announced_bodies(target: Target) -> int:
    """Bodies of a TiB, announced."""
    head = b"POST /api/clock/verify HTTP/1.1\r\n" + HOST + b"Content-Length: 1099511627776\r\n\r\n"
    return hold(target, target.http, head)


def odd_paths(target: Target) -> int:
    """Paths that lead out of the pages."""
    up = (b"/../../etc/passwd", b"/%2e%2e/%2e%2e/etc/passwd")
    paths = (*up, b"//x", b"/api/topics/" + b"a" * 5000)
    struck = 0
    while target.goes_on():
        request = b"GET " + paths[struck % len(paths)] + b" HTTP/1.1\r\n" + HOST
        with contextlib.suppress(OSError), connect(target.http) as sock:
            sock.sendall(request + b"Connection: close\r\n\r\n")
            assert b"root:" not in sock.recv(65536)
        struck += 1
    return struck


ATTACKS: tuple[Attack, ...] = (
    half_requests, wrong_tokens, scrapes, long_headers, announced_bodies, odd_paths,
)  # fmt: skip
