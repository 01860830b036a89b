"""A blocking connection that speaks the protocol, for setting the stage; measuring is in pump.py.

Owns the socket and the framing. `call` encodes, waits and decodes; frames for the measured part
are made once, by `frame`, and sent as they are.
"""

import itertools
import socket
import struct
from types import TracebackType
from typing import Any, Self

from protocol.codec import decode, encode_bytes
from protocol.headers import request_header_bytes, response_header
from protocol.registry import by_name

LENGTH = struct.Struct(">i")
CLIENT_ID = "bench"
TIMEOUT_SECONDS = 120


class BenchFailed(Exception):  # noqa: N818 - reads as the sentence it is
    """The broker answered something that makes the figure meaningless."""


def frame(api_name: str, version: int, message: object, correlation_id: int = 0) -> bytes:
    """A whole request as it goes over the wire."""
    header = request_header_bytes(by_name()[api_name], version, correlation_id, CLIENT_ID)
    body = encode_bytes(message, version)
    return LENGTH.pack(len(header) + len(body)) + header + body


def answer(api_name: str, version: int, received: memoryview) -> Any:
    """The message in a response frame whose length prefix is off already."""
    api = by_name()[api_name]
    return decode(api.response, version, received, len(response_header(api, version, 0)))


class Wire:
    """One connection to HOST:PORT."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), TIMEOUT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(1 << 16)
        self._correlation_ids = itertools.count(1)

    def send(self, request: bytes) -> None:
        self.socket.sendall(request)

    def receive(self) -> memoryview:
        """The next response without its length prefix; valid until the next call."""
        size = LENGTH.unpack(self._exactly(LENGTH.size))[0]
        return self._exactly(size)

    def receive_alone(self) -> memoryview:
        """As `receive`, where nothing else is under way: mostly one call to the kernel."""
        filled = self._received(memoryview(self._buffer))
        if filled < LENGTH.size:
            self.fill(memoryview(self._buffer)[filled : LENGTH.size])
            filled = LENGTH.size
        end = LENGTH.size + LENGTH.unpack_from(self._buffer)[0]
        if filled > end:
            raise BenchFailed("more came than was asked for")
        if end > len(self._buffer):
            self._buffer = self._buffer[:filled].ljust(end, b"\0")
        view = memoryview(self._buffer)[:end]
        self.fill(view[filled:])
        return view[LENGTH.size :]

    def call(self, api_name: str, version: int, message: object) -> Any:
        """Sends a request and returns the decoded answer, which holds views of our buffer."""
        self.send(frame(api_name, version, message, next(self._correlation_ids)))
        return answer(api_name, version, self.receive())

    def _exactly(self, size: int) -> memoryview:
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        view = memoryview(self._buffer)[:size]
        self.fill(view)
        return view

    def fill(self, view: memoryview) -> None:
        """Waits until `view` is full of what comes next."""
        filled = 0
        while filled < len(view):
            filled += self._received(view[filled:])

    def _received(self, view: memoryview) -> int:
        got = self.socket.recv_into(view)
        if not got:
            raise BenchFailed("the broker closed the connection")
        return got

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()
