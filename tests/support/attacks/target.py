"""A broker to attack: its listeners, its users, and how strangers and users reach it."""

import itertools
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protocol.apis.sasl_authenticate import SaslAuthenticateRequest
from protocol.apis.sasl_handshake import SaslHandshakeRequest
from tests.support.clients.certificates import Authority
from tests.support.clients.plain_talk import request_of
from tests.support.clients.wire import WireClient
from tests.support.logins import clients

TIMEOUT_SECONDS = 5.0
IP_BIND_ADDRESS_NO_PORT = 24
_NUMBERS = itertools.count(250)
ADMIN, MALLORY = "admin", "mallory"
PASSWORD = "correct horse"
KEYS = "keys.json"
OPEN, HIDDEN, GROUP = "open", "hidden", "open"
"""Mallory may use the topic and the group `open`; there is a topic `hidden`."""


@dataclass(frozen=True)
class Target:
    """Ports on this machine, and until when an attack goes on (monotonic seconds)."""

    plain: int
    """SASL_PLAINTEXT."""
    secure: int
    """SASL_SSL."""
    certified: int
    """SSL; a certificate of a client is wanted."""
    http: int
    authority: Authority
    folder: Path
    until: float

    def goes_on(self) -> bool:
        """True while the attack has time left."""
        return time.monotonic() < self.until

    def rest(self) -> float:
        """Seconds that the attack has left."""
        return max(0.0, self.until - time.monotonic())


Attack = Callable[[Target], int]
"""An attack goes on until its time is over; the result: how often it struck."""


def connect(port: int, number: int | None = None) -> socket.socket:
    """A connection from the address of that number; without one, from a fresh address."""
    sock = socket.socket()
    sock.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
    number = next(_NUMBERS) if number is None else number
    sock.bind((f"127.0.{number // 250 % 250}.{2 + number % 250}", 0))
    sock.settimeout(TIMEOUT_SECONDS)
    sock.connect(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def trusting(target: Target) -> ssl.SSLContext:
    """A client that knows the broker's authority."""
    return ssl.create_default_context(cadata=target.authority.pem)


def wrapped(context: ssl.SSLContext, sock: socket.socket) -> ssl.SSLSocket:
    """TLS on a connection, after the handshake."""
    return context.wrap_socket(sock, server_hostname="localhost")


class Stranger(WireClient):
    """Requests of plain values, and the steps of a log-in."""

    def ask(self, name: str, version: int, **fields: Any) -> Any:
        """The answer to a request of plain values."""
        return self.call(request_of(name, version, **fields), version)

    def say(self, name: str, version: int, **fields: Any) -> None:
        """A request without waiting for an answer."""
        self.send(request_of(name, version, **fields), version)

    def shake(self, mechanism: str) -> int:
        """The error code of SaslHandshake."""
        code: int = self.call(SaslHandshakeRequest(mechanism=mechanism), 1).error_code
        return code

    def show(self, token: bytes) -> tuple[int, bytes]:
        """Error code and token of SaslAuthenticate."""
        answer = self.call(SaslAuthenticateRequest(auth_bytes=token), 2)
        return answer.error_code, answer.auth_bytes


def stranger(port: int) -> Stranger:
    """Nobody yet, in the clear."""
    return Stranger.over(connect(port))


def user(target: Target, name: str = MALLORY) -> Stranger:
    """A user that is logged in, in the clear."""
    client = stranger(target.plain)
    assert client.shake("PLAIN") == 0
    assert client.show(clients.plain(name, PASSWORD.encode()))[0] == 0
    return client
