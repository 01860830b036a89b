"""Whatever mixture of buffers and file pieces is sent arrives in order, also to a slow reader."""

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker.sender import INLINE_BYTES, Part, SocketSender
from storage.file_slice import FileSlice
from storage.posix import real_env


class Line:
    """A sender and the other end of its socket."""

    def __init__(self) -> None:
        self.far, self.near = socket.socketpair()
        self.far.setblocking(False)
        self.near.setblocking(False)
        self.drained = 0
        self.broken: list[Exception] = []
        self.loop = asyncio.get_running_loop()
        self.sender = SocketSender(
            self.near.fileno(),
            self.loop,
            on_drained=self._drained,
            on_broken=self.broken.append,
        )

    def _drained(self) -> None:
        self.drained += 1

    async def receive(self, size: int) -> bytes:
        received = bytearray()
        async with asyncio.timeout(20):
            while len(received) < size:
                received += await self.loop.sock_recv(self.far, 65_536)
        return bytes(received)


@asynccontextmanager
async def line() -> AsyncIterator[Line]:
    made = Line()
    try:
        yield made
    finally:
        made.sender.close()
        made.near.close()
        made.far.close()


@pytest.fixture
def content() -> bytes:
    return random.Random(3).randbytes(3_000_000)


@pytest.fixture
def data_file(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "data"
    path.write_bytes(content)
    return str(path)


async def test_buffers_and_file_pieces_arrive_in_order(data_file: str, content: bytes) -> None:
    rng = random.Random(5)
    file = real_env().fs.open(data_file)
    async with line() as made:
        expected = b""
        for _ in range(30):
            parts: list[Part] = []
            for _ in range(rng.randrange(1, 6)):
                size = rng.choice([1, 100, INLINE_BYTES, INLINE_BYTES + 1, 200_000])
                position = rng.randrange(len(content) - size)
                piece = content[position : position + size]
                expected += piece
                parts.append(
                    FileSlice(file, position, size)
                    if rng.random() < 0.5
                    else memoryview(piece)
                    if rng.random() < 0.5
                    else piece
                )
            made.sender.send(parts)
        assert not made.sender.idle
        assert await made.receive(len(expected)) == expected
        await asyncio.sleep(0.01)
        assert made.sender.idle
        assert made.sender.queued_bytes == 0
        assert made.sender.sent_bytes == len(expected)
        assert made.drained == 1
        assert made.broken == []
    file.close()


async def test_file_pieces_wait_without_using_memory(data_file: str) -> None:
    file = real_env().fs.open(data_file)
    async with line() as made:
        made.sender.send([b"head", FileSlice(file, 0, 3_000_000)] * 20)
        assert made.sender.queued_bytes < 1000
        assert made.sender.queued_parts > 10
    file.close()


async def test_many_small_parts_go_in_few_calls() -> None:
    async with line() as made:
        made.sender.send([b"%05d" % n for n in range(3000)])
        assert await made.receive(15_000) == b"".join(b"%05d" % n for n in range(3000))


async def test_a_file_that_ends_early_breaks_the_connection(data_file: str) -> None:
    file = real_env().fs.open(data_file)
    for size in (1000, 100_000):
        async with line() as made:
            made.sender.send([b"head", FileSlice(file, 3_000_000 - 10, size)])
            received = asyncio.create_task(made.receive(14))
            async with asyncio.timeout(5):
                while not made.broken:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
            received.cancel()
    file.close()


async def test_a_closed_peer_is_reported_not_raised() -> None:
    async with line() as made:
        made.far.close()
        made.sender.send([b"x" * 100])
        made.sender.send([b"x" * 100, b"y"])
        assert made.broken
        assert all(isinstance(error, ConnectionError) for error in made.broken)
