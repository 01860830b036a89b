"""Loops of coroutines that have very much to do."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")

AT_A_TIME = 50  # about two milliseconds


async def slowly(items: Iterable[T], at_a_time: int = AT_A_TIME) -> AsyncIterator[T]:
    """The same items; after each so many others have their turn."""
    for number, each in enumerate(items, 1):
        yield each
        if number % at_a_time == 0:
            await asyncio.sleep(0)
