"""Long work that is done at once, where the caller is."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


class Inline:
    """The `Aside` of a simulation."""

    def run(self, work: Callable[[], T]) -> Awaitable[T]:
        return _done(work)


async def _done(work: Callable[[], T]) -> T:
    return work()
