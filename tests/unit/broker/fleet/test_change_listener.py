"""Notifications of the catalog: a connection that is cut where it begins is made again."""

import asyncio
from typing import Any

import asyncpg
import pytest

from broker.fleet.catalog.faults import kind_of
from broker.fleet.catalog.line import LineLimits
from broker.fleet.catalog.listener import ChangeListener
from broker.fleet.catalog.port import CatalogAway, CatalogError


class Cut:
    """A connection of the library's kind, which may have no other side."""

    def __init__(self, *, is_cut: bool) -> None:
        self._is_cut = is_cut
        self._closed = asyncio.Event()
        self.channels: list[str] = []

    def add_termination_listener(self, heard: Any) -> None:
        """Nobody is cut later."""

    async def add_listener(self, channel: str, heard: Any) -> None:
        if self._is_cut:
            await self._closed.wait()
            raise asyncpg.ConnectionDoesNotExistError("connection was closed")
        self.channels.append(channel)

    def terminate(self) -> None:
        self._closed.set()

    def is_closed(self) -> bool:
        return self._closed.is_set()


class Servers:
    def __init__(self, *connections: Cut) -> None:
        self._connections = list(connections)

    async def connect(self, *_: Any) -> Cut:
        return self._connections.pop(0)


def listener_of(*connections: Cut) -> ChangeListener:
    listener = ChangeListener("postgresql://h/d", ["a", "b"], LineLimits(answer=0.05))
    servers: Any = Servers(*connections)
    listener._servers = servers
    return listener


async def test_who_asks_for_notifications_and_hears_nothing_asks_again() -> None:
    cut, whole = Cut(is_cut=True), Cut(is_cut=False)
    listener = listener_of(cut, whole)
    async with asyncio.timeout(10):
        with pytest.raises(CatalogError):
            await listener.wait(0.01)
        assert await listener.wait(0.01), "something may have been said meanwhile"
    assert cut.is_closed()
    assert whole.channels == ["a", "b"]
    assert not await listener.wait(0.1), "and waits as long as need be"
    assert not whole.is_closed()


def test_a_fault_of_the_library_is_as_a_lost_connection() -> None:
    assert kind_of(asyncpg.InternalClientError("got result for unknown protocol state")) is (
        CatalogAway
    )


async def test_who_is_told_to_stop_leaves_no_connection() -> None:
    cut = Cut(is_cut=True)
    waiting = asyncio.ensure_future(listener_of(cut).wait(0.01))
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert cut.is_closed()
