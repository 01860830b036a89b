"""A small Kafka client over `protocol`: frames, raw bytes, and typed calls; blocking and asyncio.

Owns one connection. It checks nothing on behalf of the broker: what comes back is handed out as it
is, so that tests can look at it. Bytes that a broker would never send can be written with
`send_raw`.
"""

import asyncio
import contextlib
import itertools
import socket
import ssl
from typing import Any, Self

from protocol.api import Api
from protocol.codec import decode, encode_bytes
from protocol.headers import API_VERSIONS_KEY, request_header_bytes
from protocol.registry import api_of

TIMEOUT_SECONDS = 60


def frame(payload: bytes) -> bytes:
    """Four bytes of length in front."""
    return len(payload).to_bytes(4, "big") + payload


def request_frame(
    request: Any, version: int, correlation_id: int = 1, client_id: str | None = "test"
) -> bytes:
    """A whole request as a client writes it."""
    api = api_of(type(request))
    header = request_header_bytes(api, version, correlation_id, client_id)
    return frame(header + encode_bytes(request, version))


def parse_response(api: Api, version: int, payload: bytes) -> tuple[int, Any]:
    """Correlation id and message."""
    flexible = api.is_flexible(version) and api.key != API_VERSIONS_KEY
    correlation_id = int.from_bytes(payload[:4], "big")
    view = memoryview(payload)
    return correlation_id, decode(api.response, version, view, 5 if flexible else 4)


class WireClient:
    """A blocking connection."""

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str | None = "test",
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self.socket = socket.create_connection((host, port), timeout=timeout_seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client_id = client_id
        self._numbers = itertools.count(1)

    @classmethod
    def over(cls, sock: socket.socket, client_id: str | None = "test") -> Self:
        """A client on a connection that is open already."""
        client = cls.__new__(cls)
        client.socket, client.client_id, client._numbers = sock, client_id, itertools.count(1)
        return client

    def call(self, request: Any, version: int) -> Any:
        """Sends a request and returns its response."""
        return self.receive(*self.send(request, version))

    def send(self, request: Any, version: int) -> tuple[Api, int, int]:
        """Sends a request; the result is what `receive` wants."""
        number = next(self._numbers)
        self.send_raw(request_frame(request, version, number, self.client_id))
        return api_of(type(request)), version, number

    def receive(self, api: Api, version: int, number: int) -> Any:
        """The next response, which has to be the one to this request."""
        correlation_id, response = parse_response(api, version, self.receive_frame())
        assert correlation_id == number, f"answer {correlation_id} came instead of {number}"
        return response

    def send_raw(self, data: bytes) -> None:
        """Any bytes."""
        self.socket.sendall(data)

    def receive_frame(self) -> bytes:
        """The next frame without its length; ConnectionError when the broker closed."""
        return self.receive_exactly(int.from_bytes(self.receive_exactly(4), "big"))

    def receive_exactly(self, size: int) -> bytes:
        """`size` bytes; ConnectionError when the broker closed before."""
        chunks = bytearray()
        while len(chunks) < size:
            chunk = self.socket.recv(min(size - len(chunks), 1 << 20))
            if not chunk:
                raise ConnectionError(f"closed after {len(chunks)} of {size} bytes")
            chunks += chunk
        return bytes(chunks)

    def receive_all(self) -> bytes:
        """Everything until the broker closes (or resets) the connection."""
        chunks = bytearray()
        with contextlib.suppress(ConnectionResetError):
            while chunk := self.socket.recv(65536):
                chunks += chunk
        return bytes(chunks)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncWireClient:
    """The same for asyncio tests, where broker and client share a loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._numbers = itertools.count(1)

    @classmethod
    async def connect(cls, host: str, port: int, tls: ssl.SSLContext | None = None) -> Self:
        """A new connection."""
        name = "localhost" if tls is not None else None
        opened = asyncio.open_connection(host, port, limit=1 << 24, ssl=tls, server_hostname=name)
        return cls(*await opened)

    async def call(self, request: Any, version: int) -> Any:
        """Sends a request and returns its response."""
        return await self.receive(*await self.send(request, version))

    async def send(self, request: Any, version: int) -> tuple[Api, int, int]:
        """Sends a request; the result is what `receive` wants."""
        number = next(self._numbers)
        await self.send_raw(request_frame(request, version, number))
        return api_of(type(request)), version, number

    async def receive(self, api: Api, version: int, number: int) -> Any:
        """The next response, which has to be the one to this request."""
        correlation_id, response = parse_response(api, version, await self.receive_frame())
        assert correlation_id == number, f"answer {correlation_id} came instead of {number}"
        return response

    async def send_raw(self, data: bytes) -> None:
        """Any bytes."""
        self.writer.write(data)
        await self.writer.drain()

    async def receive_frame(self) -> bytes:
        """The next frame without its length; IncompleteReadError when the broker closed."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            return await self.reader.readexactly(size)

    async def receive_all(self) -> bytes:
        """Everything until the broker closes (or resets) the connection."""
        chunks = bytearray()
        async with asyncio.timeout(TIMEOUT_SECONDS):
            with contextlib.suppress(ConnectionResetError):
                while chunk := await self.reader.read(65536):
                    chunks += chunk
        return bytes(chunks)

    async def close(self) -> None:
        """Closes and waits for it."""
        self.writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):  # data that nobody read
            await self.writer.wait_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
