"""One connection for statements that come one after the other, and its end."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from broker.fleet.catalog.line import Line, LineLimits
from broker.fleet.catalog.port import CatalogAway, CatalogError
from tests.support.fleet.virtual_loop import run_virtual

CLOSE_SECONDS = LineLimits().close


class Database:
    """A database that takes a while to let in, and to answer; or is silent."""

    def __init__(self, connect: float = 0.0, answer: float = 1.0, *, is_there: bool = True) -> None:
        self._connect, self._answer, self._is_there = connect, answer, is_there
        self.done: list[str] = []
        self.ended = asyncio.Event()
        self.connections = 0
        self.line = Line("postgresql://away/db", only_reads=True)
        self.line._servers = self  # type: ignore[assignment]

    async def connect(self, *_: object) -> "Database":
        await asyncio.sleep(self._connect)
        if not self._is_there:
            raise TimeoutError
        self.connections += 1
        self.ended.clear()
        return self

    async def fetch(self, statement: str) -> list[str]:
        answer = asyncio.ensure_future(asyncio.sleep(self._answer))
        end = asyncio.ensure_future(self.ended.wait())
        await asyncio.wait([answer, end], return_when=asyncio.FIRST_COMPLETED)
        if self.ended.is_set():
            raise ConnectionResetError
        self.done.append(statement)
        return [statement]

    def is_closed(self) -> bool:
        return self.ended.is_set()

    def terminate(self) -> None:
        self.ended.set()

    def ask(self, statement: str) -> "asyncio.Task[list[str]]":
        return asyncio.create_task(self.line.ask(statement))


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        try:
            await story()
        finally:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for each in left:
                each.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    run_virtual(whole())


def now() -> float:
    return asyncio.get_running_loop().time()


def test_what_nobody_waits_for_any_more_is_not_asked() -> None:
    async def story() -> None:
        database = Database()
        asked = [database.ask(each) for each in ("first", "second", "third")]
        await asyncio.sleep(0.1)
        asked[1].cancel()
        await asyncio.wait(asked)
        assert database.done == ["first", "third"]
        assert now() <= 2.1

    run(story)


def test_what_was_sent_goes_on_without_who_has_asked() -> None:
    """A commit that waits for its standbys would count as one that has them. The next one waits."""

    async def story() -> None:
        database = Database()
        first, second = database.ask("first"), database.ask("second")
        await asyncio.sleep(0.1)
        first.cancel()
        await asyncio.sleep(0.1)
        assert first.cancelled()
        assert await second == ["second"]
        assert database.done == ["first", "second"]
        assert database.connections == 1

    run(story)


def test_a_stop_behind_a_silent_database_has_a_limit() -> None:
    """Whoever has asked before, and waits still or has given up."""

    async def story() -> None:
        database = Database(connect=5.0, is_there=False)
        for _ in range(40):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await database.line.ask("renewal")
        waiting = [database.ask("look") for _ in range(40)]
        await asyncio.sleep(0)
        began = now()
        await database.line.close()
        assert now() - began <= CLOSE_SECONDS
        await asyncio.wait(waiting, timeout=5)
        assert all(isinstance(each.exception(), CatalogError) for each in waiting)
        assert database.done == []

    run(story)


def test_a_stop_waits_for_what_is_answered_soon() -> None:
    async def story() -> None:
        database = Database(answer=0.5)
        asked = [database.ask(each) for each in ("commit", "resignation")]
        await asyncio.sleep(0)
        await database.line.close()
        assert database.done == ["commit", "resignation"]
        assert database.is_closed()
        await asyncio.wait(asked)
        with pytest.raises(CatalogAway):
            await database.line.ask("late")

    run(story)


def test_a_statement_under_way_for_long_is_left_alone_by_a_stop() -> None:
    async def story() -> None:
        database = Database(answer=60.0)
        asked = database.ask("commit")
        await asyncio.sleep(0)
        began = now()
        await database.line.close()
        assert now() - began <= CLOSE_SECONDS
        with pytest.raises(CatalogAway):
            await asked
        assert now() - began <= CLOSE_SECONDS

    run(story)


def test_a_connection_that_comes_after_the_stop_is_dropped() -> None:
    async def story() -> None:
        database = Database(connect=4.0)
        asked = database.ask("look")
        await asyncio.sleep(0)
        await database.line.close()
        with pytest.raises(CatalogAway):
            await asked
        assert database.connections == 1
        assert database.is_closed()
        assert database.done == []

    run(story)
