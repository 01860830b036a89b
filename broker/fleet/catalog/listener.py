"""Notifications of PostgreSQL: who waits for a change of some rows hears of it.

They only hasten: what counts is in the rows, at which everybody looks now and then in any case.
"""

import asyncio
from collections.abc import Sequence

from broker.fleet.catalog.faults import named_errors
from broker.fleet.catalog.line import SESSION, LineLimits, Watch
from broker.fleet.catalog.servers import Connection, Servers


class ChangeListener:
    """One connection that listens. Used from one event loop, by one task at a time."""

    def __init__(self, url: str, channels: Sequence[str], limits: LineLimits) -> None:
        """Nothing is connected. `channels`: names of the notifications that are meant."""
        self._servers = Servers(url)
        self._channels = channels
        self._limits = limits
        self._connection: Connection | None = None
        self._changed = asyncio.Event()

    async def wait(self, seconds: float) -> bool:
        """True when something has changed since the last call; False after so long without.

        CatalogError when it cannot listen.
        """
        await self._connect()
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return False
        self._changed.clear()
        return True

    def close(self) -> None:
        """Listens no longer."""
        if self._connection is not None:
            self._connection.terminate()

    async def _connect(self) -> None:
        if self._connection is not None and not self._connection.is_closed():
            return
        with named_errors():
            connection = await self._servers.connect(self._limits.connect, SESSION)
            self._connection = connection
            watch = Watch(connection, self._limits.answer)
            try:
                await self._listen(connection)
            except BaseException:
                connection.terminate()  # it would not say what it was not asked for
                raise
            finally:
                watch.end()
        self._changed.set()  # whatever was said while nobody listened

    async def _listen(self, connection: Connection) -> None:
        connection.add_termination_listener(self._heard)
        for channel in self._channels:
            await connection.add_listener(channel, self._heard)

    def _heard(self, *_: object) -> None:
        self._changed.set()
