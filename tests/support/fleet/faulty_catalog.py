"""A node's way to the catalog, on which answers and questions are lost, late and doubled."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from broker.fleet.catalog.port import CatalogAway, CatalogTimedOut
from tests.support.fleet.model_catalog import ModelCatalog

DEADLINE = 10.0
TICK = 0.001
"""Longer than what the loop takes for one moment."""


@dataclass(slots=True)
class Way:
    """Faults on the way between one node and the catalog, as probabilities, and its state."""

    lost_question: float = 0.0
    lost_answer: float = 0.0
    late: float = 0.0
    doubled: float = 0.0
    is_cut: bool = False
    stopped_until: float = 0.0
    """The node's process is stopped until then: it asks nothing, and hears nothing."""
    late_until: float = 0.0
    """Statements of this node may be done until then, though nobody waits for them."""


class FaultyCatalog:
    """The calls of `ModelCatalog`, from one node."""

    def __init__(self, rows: ModelCatalog, way: Way, dice: random.Random) -> None:
        self._rows = rows
        self._way = way
        self._dice = dice

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._rows, name)
        is_kept = name != "changed"  # which waits, and does nothing

        def asked(*arguments: Any, **named: Any) -> Awaitable[Any]:
            return self._ask(lambda: call(*arguments, **named), is_kept=is_kept)

        return asked

    async def _ask(self, call: Callable[[], Awaitable[Any]], *, is_kept: bool) -> Any:
        way, dice, time = self._way, self._dice, asyncio.get_running_loop().time
        if time() < way.stopped_until:
            await awake(way)
        if way.is_cut:
            await asyncio.sleep(dice.choice((0.01, DEADLINE)))
            raise CatalogTimedOut("no answer")
        try:
            await asyncio.sleep(dice.expovariate(500))
        except asyncio.CancelledError:  # what a killed process has sent is still done
            if is_kept:
                _keep(call())
            raise
        fate = dice.random()
        if (fate := fate - way.lost_question) < 0:
            raise CatalogAway("the question was lost")
        if (fate := fate - way.late) < 0:
            self._later(call)
            await asyncio.sleep(dice.choice((0.01, DEADLINE)))
            raise CatalogTimedOut("no answer")
        answer = await call()
        if fate - way.doubled < 0:
            self._later(call)
        if way.is_cut or dice.random() < way.lost_answer:
            raise CatalogAway("the answer was lost")
        await asyncio.sleep(dice.expovariate(500))
        if time() < way.stopped_until:
            await awake(way)
        return answer

    def _later(self, call: Callable[[], Awaitable[Any]]) -> None:
        """It is done once more, when its node may have gone or begun again."""
        seconds = self._dice.choice((0.05, 1.0, 8.0, 25.0)) * self._dice.random()
        due = asyncio.get_running_loop().time() + seconds
        self._way.late_until = max(self._way.late_until, due)

        async def late() -> None:
            await asyncio.sleep(seconds)
            await call()

        _keep(late())


_kept: set[asyncio.Future[Any]] = set()


def _keep(work: Awaitable[Any]) -> None:
    _kept.add(task := asyncio.ensure_future(work))
    task.add_done_callback(_kept.discard)


async def awake(way: Way) -> None:
    """Returns when the node's process is not stopped."""
    loop = asyncio.get_running_loop()
    while loop.time() < way.stopped_until:  # noqa: ASYNC110 - it may be stopped once more
        await asyncio.sleep(way.stopped_until - loop.time() + TICK)
