"""A change that waits until the audit has room for its trace."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from broker.runtime.deferred import Deferred, hand_on

Tasks = set["asyncio.Future[Any]"]


def once(room: Deferred[None], begin: Callable[[], Any], tasks: Tasks) -> Deferred[Any]:
    """The answer of `begin`, in whatever way it gives one, which is called when there is room.

    Whose client goes before is not called. `tasks` refers to what runs.
    """
    answer: Deferred[Any] = Deferred()

    settle = partial(hand_on, answer)

    def go(_: None, error: BaseException | None) -> None:
        try:
            made = begin() if error is None else None
        except Exception as fault:  # noqa: BLE001 - handed on
            error = fault
        if error is not None:
            answer.fail(error)
        elif isinstance(made, Deferred):
            made.listen(settle)
        elif isinstance(made, Awaitable):
            _run(made, settle, tasks)
        else:
            answer.resolve(made)

    room.listen(go)
    answer.when_abandoned(room.abandon)
    return answer


def _run(
    awaitable: Awaitable[Any], settle: Callable[[Any, BaseException | None], None], tasks: Tasks
) -> None:
    def done(future: "asyncio.Future[Any]") -> None:
        tasks.discard(future)
        error = asyncio.CancelledError() if future.cancelled() else future.exception()
        settle(None if error is not None else future.result(), error)

    task = asyncio.ensure_future(awaitable)
    tasks.add(task)
    task.add_done_callback(done)
