"""The HTTP port answers the very first request, and says nothing about paths it does not know."""

import asyncio
import os
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import pytest

from broker.http.port import visits
from broker.http.port.listener import HttpListener
from broker.http.port.messages import Request, Response


class Echo:
    """Says what it was asked."""

    async def answer(self, request: Request) -> Response:
        if request.path != "/known":
            return Response(404, "x/y", b"")
        asked = f"{request.method} {request.path}?{request.query} {request.body.decode()}"
        return Response(200, "text/plain", asked.encode())

    def __init__(self) -> None:
        self.drops: Counter[str] = Counter()

    def dropped(self, reason: str) -> None:
        self.drops[reason] += 1

    def close(self) -> None:
        pass


@asynccontextmanager
async def served(answering: Echo | None = None, host: str = "127.0.0.1") -> AsyncIterator[int]:
    listening = socket.socket()
    listening.bind((host, 0))
    door = HttpListener(asyncio.get_running_loop(), listening, lambda: answering or Echo())
    door.open()
    try:
        yield listening.getsockname()[1]
    finally:
        await door.close()


async def get(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    async with asyncio.timeout(20):
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_the_first_request_and_later_ones_are_answered() -> None:
    async with served() as port:
        first, *later = await asyncio.gather(*(get(port, "/known?a=1") for _ in range(5)))
        assert first.startswith(b"HTTP/1.1 200 ")
        assert first.endswith(b"GET /known?a=1 ")
        assert all(answer.endswith(b"GET /known?a=1 ") for answer in later)
        assert (await get(port, "/other")).startswith(b"HTTP/1.1 404 ")


async def said(port: int, data: bytes) -> bytes:
    """The answer to raw bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    async with asyncio.timeout(20):
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (b"Content-Encoding: gzip\r\nContent-Length: 4", b"none"),
        (b"Content-Encoding: deflate\r\nContent-Length: 4", b"none"),
        (b"Transfer-Encoding: chunked", b"zz\r\n"),
    ],
)
async def test_a_body_that_cannot_be_read_is_a_fault_of_the_client(
    headers: bytes, body: bytes
) -> None:
    async with served() as port:
        head = b"POST /known HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n\r\n"
        answer = await said(port, head + body)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 ")), answer


async def test_a_client_that_does_not_read_does_not_hold_up_the_stop() -> None:
    """A container gives a broker ten seconds."""

    class Large(Echo):
        async def answer(self, request: Request) -> Response:
            return Response(200, "text/plain", bytes(64 << 20))

    with socket.socket() as deaf:
        async with asyncio.timeout(10):
            async with served(Large()) as port:
                deaf.connect(("127.0.0.1", port))
                deaf.sendall(b"GET /known HTTP/1.1\r\nHost: x\r\n\r\n")
                await asyncio.to_thread(deaf.recv, 1)


async def test_it_closes_without_ever_having_been_asked() -> None:
    async with served() as port:
        assert port > 0


async def test_a_crowd_that_never_asks_does_not_keep_a_probe_out() -> None:
    async with served() as port:
        await get(port, "/known")
        crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(150)]
        for _, writer in crowd:
            writer.write(b"GET /kn")
        assert (await get(port, "/known")).startswith(b"HTTP/1.1 200 ")
        async with asyncio.timeout(5):
            assert await crowd[0][0].read() == b""
        assert not crowd[-1][0].at_eof()
        for _, writer in crowd:
            writer.close()


def half_requests(port: int, count: int, address: str = "127.0.0.1") -> list[socket.socket]:
    """Connections that never come to the end of their first head."""
    made = []
    for _ in range(count):
        each = socket.socket()
        each.bind((address, 0))
        each.connect(("127.0.0.1", port))
        each.setblocking(False)
        each.send(b"GET /kn")
        made.append(each)
    return made


@contextmanager
def closed_at_the_end(sockets: list[socket.socket]) -> Iterator[None]:
    try:
        yield
    finally:
        for each in sockets:
            each.close()


def still_open(sockets: list[socket.socket]) -> int:
    count = 0
    for each in sockets:
        with suppress(ConnectionError):
            try:
                count += each.recv(1) != b""
            except BlockingIOError:
                count += 1
    return count


async def test_a_burst_of_half_requests_leaves_as_many_as_are_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """1,500 left 796 open for ever."""
    monkeypatch.setattr(visits, "HEAD_SECONDS", 1.5)
    echo = Echo()
    crowd: list[socket.socket] = []
    async with served(echo) as port:
        with closed_at_the_end(crowd):
            await burst(port, echo, crowd)


async def burst(port: int, echo: Echo, crowd: list[socket.socket]) -> None:
    await get(port, "/known")
    before = len(os.listdir("/proc/self/fd"))
    for part in range(15):
        crowd += await asyncio.to_thread(half_requests, port, 100, f"127.0.0.{part + 1}")
    await asyncio.sleep(0.3)
    assert still_open(crowd) <= visits.MAX_CONNECTIONS
    ours = len(os.listdir("/proc/self/fd")) - before - len(crowd)
    assert ours <= visits.MAX_CONNECTIONS
    assert (await get(port, "/known")).startswith(b"HTTP/1.1 200 ")
    await asyncio.sleep(1.6)
    assert still_open(crowd) == 0, "half a head has a time-out"
    assert echo.drops["too_many_connections"] > 0
    assert echo.drops["head_too_slow"] > 0
    assert echo.drops.total() >= len(crowd)


async def test_one_address_has_its_share_and_keeps_its_newest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(visits, "GRACE_SECONDS", 2.0)
    echo = Echo()
    async with served(echo) as port:
        await get(port, "/known")
        other = await asyncio.to_thread(half_requests, port, 3, "127.0.0.2")
        crowd = await asyncio.to_thread(half_requests, port, 30)
        await asyncio.sleep(0.3)
        assert still_open(crowd) == 30, "their requests may be on their way"
        await asyncio.sleep(2.0)
        crowd += await asyncio.to_thread(half_requests, port, 1)
        async with asyncio.timeout(20):
            while still_open(crowd) > visits.MAX_PER_ADDRESS:  # noqa: ASYNC110 - sockets tell nobody
                await asyncio.sleep(0.05)
        assert still_open(crowd) == visits.MAX_PER_ADDRESS
        assert still_open(crowd[-visits.MAX_PER_ADDRESS :]) == visits.MAX_PER_ADDRESS
        assert still_open(other) == 3, "others are not touched"
        for each in (*crowd, *other):
            each.close()


async def test_a_head_that_trickles_in_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits, "HEAD_SECONDS", 0.5)
    monkeypatch.setattr(visits, "IDLE_SECONDS", 30)
    async with served() as port:
        for first in (b"", b"GET /known HTTP/1.1\r\nHost: x\r\n\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(first)
            if first:
                assert (await reader.readuntil(b"/known? ")).startswith(b"HTTP/1.1 200 ")
            began = time.monotonic()
            with suppress(ConnectionError, RuntimeError):  # uvloop: the transport is closed
                for letter in b"GET /known?" * 20:
                    writer.write(bytes([letter]))
                    await writer.drain()
                    await asyncio.sleep(0.05)
                    if reader.at_eof() or writer.is_closing():
                        break
            assert 0.4 < time.monotonic() - began < 5
            writer.close()


async def test_a_kept_connection_rests_between_its_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Longer than a head may take: Prometheus asks again after a minute."""
    monkeypatch.setattr(visits, "HEAD_SECONDS", 0.3)
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(b"GET /known HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readuntil(b"/known? ")).startswith(b"HTTP/1.1 200 ")
            await asyncio.sleep(0.6)
        writer.close()
        await writer.wait_closed()
