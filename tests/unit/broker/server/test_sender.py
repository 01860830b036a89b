"""Whatever mixture of buffers and file pieces is sent arrives in order, also to a slow reader."""

import asyncio
import os
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker.runtime.connection_limits import connections_within
from broker.runtime.lanes import DiskLanes
from broker.server.page_cache import BLIND_AFTER, WARM_BYTES, WINDOW_BYTES, PageCache
from broker.server.sender import Part, SocketSender
from storage.files.file_slice import FileSlice
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
        self.lanes = DiskLanes(self.loop)
        self.cache = PageCache(self.lanes.lane("data"))
        self.sender = SocketSender(
            self.near.fileno(),
            self.loop,
            self.cache,
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
        await made.lanes.close()


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
                size = rng.choice([1, 100, 20_000, 200_000, WINDOW_BYTES + 1])
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


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_clients_that_read_slowly_leave_the_logs_their_files() -> None:
    async with line() as made:
        before = open_files()
        made.sender.send([bytes(4_000_000)])
        assert not made.sender.idle
        of_a_connection = 1 + open_files() - before
        assert connections_within(1024) * of_a_connection <= 1024 - 1024 // 4


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


class ColdFile:
    """A file whose bytes are only in the cache once somebody has read them with patience."""

    path = "cold"

    def __init__(self, path: str, *, can_tell: bool = True) -> None:
        self.file = real_env().fs.open(path)
        self.warm: set[int] = set()
        self.can_tell = can_tell

    def _pages(self, position: int, size: int) -> range:
        return range(position // 4096, (position + size - 1) // 4096 + 1)

    def read_into(self, position: int, buffer: memoryview) -> int:
        self.warm.update(self._pages(position, len(buffer)))
        return self.file.read_into(position, buffer)

    def read_into_if_cached(self, position: int, buffer: memoryview) -> int | None:
        if not self.can_tell or not self.warm.issuperset(self._pages(position, len(buffer))):
            return None
        return self.file.read_into(position, buffer)

    def read_at(self, position: int, size: int) -> bytes:
        return self.file.read_at(position, size)

    def fileno(self) -> int | None:
        return self.file.fileno()


async def test_cold_pieces_are_fetched_on_a_lane_in_their_order(
    data_file: str, content: bytes
) -> None:
    cold = ColdFile(data_file)
    async with line() as made:
        made.sender.send([b"a", FileSlice(cold, 0, 2_900_000), b"b", FileSlice(cold, 9, 100), b"c"])
        made.sender.send([FileSlice(cold, 2_950_000, 1000), b"d"])
        assert made.cache.visits == 1
        expected = b"".join(
            (
                b"a",
                content[:2_900_000],
                b"b",
                content[9:109],
                b"c",
                content[2_950_000:2_951_000],
                b"d",
            )
        )
        assert await made.receive(len(expected)) == expected
        assert made.cache.visits == 3
        visits = made.cache.visits
        made.sender.send([FileSlice(cold, 0, 2_900_000)])
        assert await made.receive(2_900_000) == content[:2_900_000]
        assert made.cache.visits == visits
        assert made.broken == []
    cold.file.close()


async def test_a_file_system_that_cannot_tell_is_believed_to_be_warm(
    data_file: str, content: bytes
) -> None:
    blind = ColdFile(data_file, can_tell=False)
    async with line() as made:
        for _ in range(20):
            made.sender.send([FileSlice(blind, 0, 50_000), FileSlice(blind, 0, 100)])
            assert await made.receive(50_100) == content[:50_000] + content[:100]
        assert made.cache.visits == BLIND_AFTER
    blind.file.close()


async def test_a_connection_that_ends_while_a_piece_is_fetched(data_file: str) -> None:
    cold = ColdFile(data_file)
    async with line() as made:
        made.sender.send([b"head", FileSlice(cold, 0, WARM_BYTES)])
        made.sender.close()
        await asyncio.sleep(0.05)
        assert made.sender.idle
        assert made.broken == []
    cold.file.close()
