"""One connection to PostgreSQL that is made when it is needed, and dropped when it does not answer.

Nothing is ever cancelled: PostgreSQL would answer a commit that waits for its standbys as if they
had it. A statement whose time is over is left alone and its connection dropped, so that its outcome
is open, as after a lost connection.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from broker.fleet.catalog.faults import named_errors
from broker.fleet.catalog.history import follow_history
from broker.fleet.catalog.port import CatalogAway, CatalogTimedOut
from broker.fleet.catalog.servers import CONNECT_SECONDS, Connection, Servers

T = TypeVar("T")


class LineLimits(NamedTuple):
    """Longest waits, in seconds."""

    connect: float = CONNECT_SECONDS
    """For each server of the database."""
    answer: float = 10.0
    close: float = 2.0
    """For what is under way, and has come before, when the line is closed."""


LIMITS = LineLimits()
SESSION = {
    "application_name": "horolog",
    "default_transaction_isolation": "read committed",
    "idle_in_transaction_session_timeout": "60s",
    "jit": "off",
}
LOCK_SHARE = 0.8
"""Part of the wait for an answer after which PostgreSQL gives up to wait for a lock."""


class Line:
    """Statements one after the other. Used from one event loop."""

    def __init__(self, url: str, limits: LineLimits = LIMITS, *, only_reads: bool = False) -> None:
        """Nothing is connected. `only_reads`: the rows are read as they are, whatever their history
        is.
        """
        self._servers = Servers(url)
        self._limits = limits
        self._connection: Connection | None = None
        self._only_reads = only_reads
        self._followed: Connection | None = None
        """Connection by the history of whose database the rows go."""
        self._turn = asyncio.Lock()
        self._is_closed = False

    async def ask(self, statement: str, *arguments: object) -> list[Any]:
        """Rows of one statement. CatalogError."""
        return await self.run(lambda connection: connection.fetch(statement, *arguments))

    async def run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Result of some statements on the connection, when it is their turn. CatalogError.

        Who waits for it may be cancelled: work that has begun is not, all other is left out.
        """
        await self._turn.acquire()
        begun = asyncio.ensure_future(self._run(work))
        begun.add_done_callback(lambda _: self._turn.release())
        return await asyncio.shield(begun)

    async def close(self) -> None:
        """Waits for what was asked before, a while at most; nothing is asked after that.

        Of what is still under way then nobody hears how it ended, as after a lost connection.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.close), self._turn:
                pass
        self._is_closed = True
        if self._connection is not None:
            self._connection.terminate()

    async def _run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        with named_errors():
            connection = await self._connected()
            watch = Watch(connection, self._limits.answer)
            try:
                await self._follow_history(connection)
                return await work(connection)
            except Exception as error:
                if watch.is_over:
                    raise CatalogTimedOut(f"no answer in {self._limits.answer:g} s") from error
                raise
            finally:
                watch.end()

    async def _connected(self) -> Connection:
        self._check_open()
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._servers.connect(
                self._limits.connect, _session(self._limits)
            )
            if self._is_closed:  # meanwhile
                self._connection.terminate()
            self._check_open()
        return self._connection

    async def _follow_history(self, connection: Connection) -> None:
        if not self._only_reads and self._followed is not connection:
            await follow_history(connection)
            self._followed = connection

    def _check_open(self) -> None:
        if self._is_closed:
            raise CatalogAway("this broker has closed the connection")


def _session(limits: LineLimits) -> dict[str, str]:
    """Settings of a connection.

    A server process that waits for a lock does not see that its connection was dropped: those of
    all repetitions would wait beside each other, until there is no connection left for anybody.
    """
    milliseconds = round(1000 * LOCK_SHARE * limits.answer)
    return {**SESSION, "lock_timeout": f"{milliseconds}ms"}


class Watch:
    """Drops a connection after some seconds."""

    def __init__(self, connection: Connection, seconds: float) -> None:
        """From now on."""
        self._connection = connection
        self._timer = asyncio.get_running_loop().call_later(seconds, self._over)
        self.is_over = False
        """It was dropped: who waits for it hears of an error."""

    def end(self) -> None:
        """It has answered."""
        self._timer.cancel()

    def _over(self) -> None:
        self.is_over = True
        self._connection.terminate()
