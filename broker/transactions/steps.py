"""The steps by which a transactional id gets from one moment to the next, each made durable.

A step needs the lock of its id. Used from the event loop only.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from broker.partitions.partition import ACKS_ALL
from broker.runtime.gathering import wait_for
from broker.state.state_topic import StateTopic
from broker.transactions.participants import Ending, Participants
from broker.transactions.transaction import PREPARED, Facts, TransactionState, completed, fenced
from broker.transactions.transaction_records import transaction_key, transaction_value
from broker.transactions.transactional import Transactional
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.guards.clock_guard import ClockWatch
    from storage.env import Clock

ACKS_WRITTEN = 1
ENDED_BY_OTHERS = {ErrorCode.INVALID_PRODUCER_EPOCH}
"""Code of a partition that knows a newer epoch of the producer: nothing is left to end."""


class Steps:
    """Writes moments and markers."""

    participants: Participants
    open: dict[str, Transactional]
    """Those with a transaction that has not ended, or whose end is not written yet."""
    ended: Counter[str]
    """Transactions that ended: committed, aborted, timed_out, fenced, orphaned."""

    def __init__(
        self,
        topic: StateTopic,
        participants: Participants,
        clock: "Clock",
        clock_watch: "ClockWatch",
    ) -> None:
        """No transaction is open."""
        self._topic = topic
        self._clock = clock
        self._clock_watch = clock_watch
        self.participants = participants
        self.open = {}
        self.ended = Counter()

    @property
    def now_ms(self) -> int:
        """Wall time, which dates moments."""
        return self._clock.now_ms()

    async def write(self, owner: Transactional, facts: Facts, *, acks: int = ACKS_ALL) -> None:
        """The next moment counts once written as `acks` asks. KafkaError: all is as before."""
        check_there(owner)
        row = transaction_key(owner.transactional_id), transaction_value(facts.remembered())
        await wait_for(self._topic.write(owner.transactional_id, [row], acks=acks))
        began = (
            facts.state is TransactionState.ONGOING
            and owner.facts.state is not TransactionState.ONGOING
        )
        owner.facts = facts
        if began:
            self._time(owner, facts.timeout_ms)
        self.notice(owner)

    async def forget(self, owner: Transactional) -> None:
        """The id is gone, for those who wait for their turn as well."""
        row = transaction_key(owner.transactional_id), None
        await wait_for(self._topic.write(owner.transactional_id, [row]))
        owner.is_gone = True

    def notice(self, owner: Transactional) -> None:
        """Updates the set of open transactions after a change."""
        if owner.is_open:
            self.open[owner.transactional_id] = owner
        else:
            self.open.pop(owner.transactional_id, None)

    def restore(self, owner: Transactional) -> None:
        """Restores a transaction: an open one has as much time as it had left.

        All of its time, when the clock is unverified.
        """
        facts = owner.facts
        left_ms = facts.started_ms + facts.timeout_ms - self.now_ms
        if self._clock_watch.look():
            left_ms = facts.timeout_ms
        self._time(owner, min(max(left_ms, 0), facts.timeout_ms))
        self.notice(owner)

    def is_overdue(self, owner: Transactional) -> bool:
        """True when the time of its open transaction is over."""
        is_open = owner.facts.state is TransactionState.ONGOING
        return is_open and owner.deadline <= self._clock.monotonic()

    async def abort(self, owner: Transactional, why: str) -> None:
        """Fences the producer of an open transaction, and ends that."""
        await self.write(owner, fenced(owner.facts, self.now_ms))
        self.ended[why] += 1
        await self.complete(owner)

    async def close(self, owner: Transactional) -> None:
        """Its partitions take no more records: the next transaction may begin. KafkaError."""
        await self.participants.close(owner.transactional_id, self._ending(owner))

    async def complete(self, owner: Transactional) -> None:
        """Markers, and then that they are written; what fails is tried again later.

        That the end is complete need not be durable at once: a start that does not find it writes
        the markers again, and nothing that comes later is durable before it.
        """
        facts = owner.facts
        if facts.state not in PREPARED:
            return
        ending = self._ending(owner)
        failed = await self.participants.end(owner.transactional_id, ending, facts.partitions)
        if all(each.code in ENDED_BY_OTHERS for each in failed.values()):
            await self.write(owner, completed(facts, self.now_ms), acks=ACKS_WRITTEN)

    def _ending(self, owner: Transactional) -> Ending:
        facts = owner.facts
        state = self._topic.partitions[self._topic.index_of(owner.transactional_id)]
        return Ending(facts.producer_id, facts.producer_epoch, facts.is_commit, state.leader_epoch)

    @asynccontextmanager
    async def turn(self, owner: Transactional, seconds: float | None = None) -> AsyncIterator[None]:
        """Nobody else changes it meanwhile. CONCURRENT_TRANSACTIONS (51) when others do for longer
        than `seconds`.
        """
        await _acquired(owner, seconds)
        try:
            check_there(owner)
            yield
        finally:
            owner.turn.release()

    def _time(self, owner: Transactional, wait_ms: int) -> None:
        owner.deadline = self._clock.monotonic() + wait_ms / 1000


async def _acquired(owner: Transactional, seconds: float | None) -> None:
    try:
        async with asyncio.timeout(seconds):
            await owner.turn.acquire()
    except TimeoutError:
        text = f"Another request of {owner.transactional_id} is not answered yet"
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, text) from None


def check_there(owner: Transactional) -> None:
    """INVALID_PRODUCER_ID_MAPPING (49) for an id that expired while a request waited;
    NOT_COORDINATOR (16) for one that another node coordinates since.
    """
    if owner.is_elsewhere:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)
    if owner.is_gone:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"{owner.transactional_id} has just expired"
        )
