"""A fetch of a share session (KIP-932): waits for records, then acquires them.

Looking and acquiring are one step of the loop, so that of several members exactly one gets a
record. It ends with `min_bytes` of records, an error of a partition, or the end of the wait.
"""

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from typing import NamedTuple

from broker.fetching.damage import DamageMet, Unreadable
from broker.partitions.fetch_waiters import FetchWaiters, Waiter
from broker.runtime.deferred import Deferred
from broker.share.fetch_look import (
    Acquirable,
    FetchLook,
    FetchTerms,
    Passed,
    SharedAnswer,
    place_of,
)
from broker.share.reading import NotCached, ShareReading
from broker.share.served_partitions import ServedPartitions
from broker.share.sessions import ShareSession, ShareSessions
from broker.share.share_counts import ShareCounts
from broker.topics.topic_catalog import TopicCatalog
from protocol.records.batch import CorruptBatch
from storage.errors import StorageError
from storage.files.file_slice import Unverified


class ShareFetchParts(NamedTuple):
    """The services that fetches work with."""

    topics: TopicCatalog
    sessions: ShareSessions
    partitions: ServedPartitions
    waiters: FetchWaiters
    damage: DamageMet
    counts: ShareCounts


class ShareFetcher:
    """One fetch on its way."""

    def __init__(
        self,
        parts: ShareFetchParts,
        session: ShareSession,
        terms: FetchTerms,
        may_read: Callable[[str], bool],
    ) -> None:
        """Nothing was read; `may_read` judges names of topics, each time again."""
        self.waited_seconds = 0.0
        self._parts = parts
        self._session = session
        self._terms = terms
        self._may_read = may_read
        self._wait_ms = terms.max_wait_ms
        self._may_block = False
        self._has_come = False
        """True once something was brought or checked: where all of it has no room here together,
        it goes out as it comes.
        """
        self._answer: Deferred[list[SharedAnswer]] = Deferred()

    def begin(self) -> Deferred[list[SharedAnswer]]:
        """The answer, perhaps at once."""
        self._go_on()
        return self._answer

    def _go_on(
        self, unreadable: Collection[Unreadable] = (), late: Collection[Unverified] = ()
    ) -> None:
        if self._answer.abandoned or self._answer.settled:
            return
        session, parts = self._session, self._parts
        if not parts.sessions.lives(session) or not session.partitions:
            self._answer.resolve([])
            return
        if late:
            self._wait_ms = 0
        look = FetchLook(session, parts.partitions, self._may_read, parts.damage)
        passed = Passed(unreadable, late)
        try:
            look.run(parts.topics.image, self._terms, passed, may_wait=self._may_block)
        except NotCached as cold:
            self._warm(cold.reading)
            return
        if look.unverified and not (self._has_come and look.readings):
            parts.damage.settle(look.unverified, self._settled)
        elif look.refused or look.unverified or self._is_over or self._is_enough(look):
            self._take(look)
        else:
            self._wait(look, self._terms.min_bytes - look.size_bytes)

    def _settled(self, unreadable: Collection[Unreadable], late: Collection[Unverified]) -> None:
        self._has_come = True
        self._go_on(unreadable, late)

    @property
    def _is_over(self) -> bool:
        return self._wait_ms <= 0 or self._answer.is_urgent

    def _is_enough(self, look: FetchLook) -> bool:
        return bool(look.readings) and look.size_bytes >= self._terms.min_bytes

    # --- acquiring ---

    def _take(self, look: FetchLook) -> None:
        """Acquires what was read, and answers; waits on if nothing came of it."""
        answers, has_moved = self._acquired(look.readings)
        if answers or look.refused or self._is_over:
            self._answer.resolve([*answers, *look.refused])
        elif has_moved:  # over batches of aborted transactions: what is behind them?
            asyncio.get_running_loop().call_soon(self._go_on)
        else:
            self._wait(look, 1)

    def _acquired(self, ready: list[Acquirable]) -> tuple[list[SharedAnswer], bool]:
        """Acquires, and says whether anything moved."""
        answers: list[SharedAnswer] = []
        ask, has_moved = self._terms.ask, False
        for reading, bounds, fetched in ready:
            if not bounds or ask.max_records <= 0:
                continue
            records, served = reading.records, reading.served
            delayed = records.delayed
            late_ms = None if delayed is None else delayed.late_ms
            got = records.acquire(self._session.member, fetched, ask)
            has_moved = has_moved or records.next_fetch() != reading.at
            if got:
                taken = sum(each.last - each.first + 1 for each in got)
                self._parts.counts.delivered += taken
                if late_ms is not None:
                    self._parts.counts.was_late(late_ms)
                ask = ask._replace(max_records=ask.max_records - taken)
                piece, topic = reading.cut(bounds, got), served.partition.topic
                answers.append(SharedAnswer(place_of(served), None, topic, piece, tuple(got)))
        return answers, has_moved

    def _warm(self, reading: ShareReading) -> None:
        """Has headers read on a lane; then looks again, and reads where it stands if need be."""
        most = self._terms.ask.max_records
        read = reading.served.partition.on_lane(partial(_read_quietly, reading, most))
        self._may_block = True
        read.listen(lambda _, error: self._go_on())  # noqa: ARG005 - the next look meets a fault

    # --- waiting ---

    def _wait(self, look: FetchLook, missing: int) -> None:
        waiters = self._parts.waiters
        before_ms = self._wait_ms
        waiter = waiters.register(
            look.watched, missing, self._wait_ms, lambda: self._woken(waiter, before_ms)
        )
        self._answer.when_abandoned(lambda: waiters.cancel(waiter))
        self._answer.when_hurried(lambda: waiters.give_up(waiter))

    def _woken(self, waiter: Waiter, before_ms: int) -> None:
        left_ms = self._parts.waiters.remaining_ms(waiter)
        self.waited_seconds += max(before_ms - left_ms, 0) / 1000
        self._wait_ms = 0 if waiter.is_over else left_ms
        self._go_on()


def _read_quietly(reading: ShareReading, max_records: int) -> None:
    try:
        reading.bounds(max_records, may_wait=True)
    except (CorruptBatch, StorageError):
        return
