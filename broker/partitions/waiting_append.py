"""A batch that waits for the turn of its log, or has it.

When its turn comes it is appended on the loop like any other, unless its checks take too long there
or it needs a long rewrite: then on a lane.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable
from functools import partial
from math import inf
from typing import NamedTuple

from broker.partitions.partition_services import PartitionServices, PendingRewrite
from broker.runtime.deferred import Deferred
from broker.runtime.lanes import settle
from broker.runtime.memory_account import MemoryClass
from broker.runtime.unpacking import RequestBudget
from storage.segment.log_snapshot import AppendResult
from storage.validation.checked_batch import MistimedBatch
from storage.validation.unpacking import TooMuchWork, Work

INLINE_REWRITE_BYTES = 1280 * 1024
"""Records of more than these bytes are rewritten on a lane. A batch of the usual largest size is
below it: a copy for the lane and the way there and back take longer than the rewriting."""

Tried = AppendResult | PendingRewrite
Attempt = Callable[[Work | None], Tried]
AtOnce = Callable[[Attempt], Tried]
"""Makes an attempt on the loop, within what that allows; TooMuchWork."""


def only_on_lane(_: Attempt) -> Tried:
    """For a batch of which it is known that it takes too long on the loop."""
    raise TooMuchWork


def on_loop(attempt: Attempt) -> Tried:
    """For a batch whose bytes are its records: nothing is unpacked."""
    return attempt(None)


class AppendSteps(NamedTuple):
    """Steps of an append, as its partition does them."""

    append: Callable[[memoryview, Work | None], AppendResult]
    """MistimedBatch, TooMuchWork, KafkaError; nothing is stored then."""
    rewritten: Callable[[MistimedBatch], PendingRewrite]
    """Touches nothing of the log."""
    ended: Callable[[Tried | None, BaseException | None], None]
    """Hears what came of it; on the loop."""


class WaitingAppend:
    """One batch on its way. Its bytes are accounted for until it was tried."""

    __slots__ = ("_at_once", "_budget", "_records", "_serving", "_steps")

    def __init__(
        self,
        records: memoryview,
        steps: AppendSteps,
        budget: RequestBudget,
        serving: PartitionServices,
        at_once: AtOnce,
    ) -> None:
        """Copies the records: the caller may use its buffer again."""
        serving.memory.charge(MemoryClass.LANES, len(records))
        self._records = bytearray(records)
        self._steps = steps
        self._budget = budget
        self._serving = serving
        self._at_once = at_once

    def begin(self) -> None:
        """Its turn has come."""
        outcome, failure = None, None
        try:
            outcome = self._at_once(partial(self._try, most_rewritten=INLINE_REWRITE_BYTES))
        except TooMuchWork:
            self._serving.unpacking.on_lane(self._budget, self._try, self._left_lane)
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the sender is answered
            failure = error
        self._ended(outcome, failure)

    def released(self) -> None:
        """It will not be tried: its bytes are no longer here."""
        self._serving.memory.release(MemoryClass.LANES, len(self._records))

    def _try(self, work: Work | None, most_rewritten: float = inf) -> Tried:
        try:
            return self._steps.append(memoryview(self._records), work)
        except MistimedBatch as mistimed:
            if len(mistimed.rewrite.payload) > most_rewritten:
                raise TooMuchWork from None
            return self._steps.rewritten(mistimed)

    def _left_lane(self, future: Future[Tried]) -> None:
        came: Deferred[Tried] = Deferred()
        settle(came, future)
        came.listen(self._ended)

    def _ended(self, outcome: Tried | None, error: BaseException | None) -> None:
        self.released()
        self._steps.ended(outcome, error)
