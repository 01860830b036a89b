"""The HTTP port answers the very first request, and says nothing about paths it does not know."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from broker.http.door import HttpDoor
from broker.http.exchange import Request, Response


class Echo:
    """Says what it was asked."""

    async def answer(self, request: Request) -> Response:
        if request.path != "/known":
            return Response(404, "x/y", b"")
        asked = f"{request.method} {request.path}?{request.query} {request.body.decode()}"
        return Response(200, "text/plain", asked.encode())

    def close(self) -> None:
        pass


@asynccontextmanager
async def served() -> AsyncIterator[int]:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    door = HttpDoor(asyncio.get_running_loop(), listening, Echo)
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
