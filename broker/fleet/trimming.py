"""Log starts and manifests go into the rows: what retention or a client removed does not come back
with another owner, and what is in segments needs no commit any more.
"""

import asyncio
from collections.abc import Awaitable
from typing import NamedTuple

from broker.fleet.catalog.rows import CommitAnswer, Incarnation, Naming, Trim
from broker.fleet.checkpointer import CommittedSpans
from broker.fleet.committer import Committer, Done, FleetReach, NotCommitted
from broker.fleet.host import OwnedLog
from broker.fleet.pacing import until_answered


class Trimming:
    """Log starts and manifests of one incarnation. Used from the event loop."""

    def __init__(self, reach: FleetReach, me: Incarnation, spans: CommittedSpans) -> None:
        """Nothing is asked."""
        self._catalog, _, self._clock, self._times, *_ = reach
        self._me = me
        self._spans = spans
        self._tasks: set[asyncio.Future[bool]] = set()

    async def round(self) -> None:
        """All starts that have moved. CatalogError."""
        for each in list(self._spans.logs.values()):
            await self.trim(each.log)

    async def trim(self, log: OwnedLog) -> bool:
        """True when the rows have the start of a log; False: it is another's, or was deleted.

        CatalogError.
        """
        start, known = log.start_offset, self._spans.start_of(log)
        if known is None:
            return False
        if start <= known:
            return True
        keep_ms = round(self._times.keep * 1000)
        order = Trim(self._me, log.shard, log.partition, start, keep_ms)
        async with self._spans.changing:
            answer = await self._answer(log, "trim", self._catalog.trim(order))
            if answer.counts:
                self._spans.trimmed(log, start)
        return answer.counts

    async def name_manifest(self, log: OwnedLog, number: int, end_offset: int) -> bool:
        """True when a manifest of the log's epoch counts; False: the log is another's, or was
        deleted.

        The rows have the log's start before: commits of what is before it go with the naming,
        while a leader that follows might still begin where the rows said so. CatalogError.
        """
        if not await self.trim(log):
            return False
        keep_ms = round(self._times.keep * 1000)
        order = Naming(self._me, log.shard, log.partition, number, end_offset, keep_ms)
        async with self._spans.changing:
            answer = await self._answer(log, "manifest", self._catalog.name_manifest(order))
            if answer.counts:
                self._spans.copied(log, end_offset)
        return answer.counts

    async def _answer(
        self, log: OwnedLog, change: str, answer: Awaitable[CommitAnswer]
    ) -> CommitAnswer:
        """The catalog's; until there is one, the rows may have changed or not."""
        asked = log.partition, change
        self._spans.unsure.add(asked)
        found = await answer
        self._spans.unsure.discard(asked)
        return found

    def trim_for(self, log: OwnedLog, done: Done) -> None:
        """As `trim`, until it is known; `done` hears of it."""
        task = asyncio.ensure_future(self._trimmed(log))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda over: _answer(over, done))

    def end(self) -> None:
        """The incarnation has ended."""
        for each in self._tasks:
            each.cancel()

    async def _trimmed(self, log: OwnedLog) -> bool:
        return await until_answered(lambda: self.trim(log), self._clock, self._times)


class OwnerCommits(NamedTuple):
    """The `WriteCommits` of an incarnation."""

    committer: Committer
    trimming: Trimming

    def request(self, log: OwnedLog, offset: int, done: Done) -> None:
        """As the port has it."""
        self.committer.request(log, offset, done)

    def appended(self, log: OwnedLog) -> None:
        """As the port has it."""
        self.committer.appended(log)

    def start_moved(self, log: OwnedLog, done: Done) -> None:
        """As the port has it."""
        self.trimming.trim_for(log, done)


def _answer(over: asyncio.Future[bool], done: Done) -> None:
    if over.cancelled() or (over.exception() is None and not over.result()):
        done(NotCommitted("the partition has another owner"))
    else:
        done(over.exception())
