"""Deferred answers put together: one after another, several into one, or awaited by a coroutine.

All of it runs synchronously in the call that settles the last part; nothing here makes a task.
"""

from __future__ import annotations  # functions are made per request: cheap ones

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from broker.runtime.deferred import Deferred, resolved
from protocol.errors import KafkaError

R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


def after(
    source: Deferred[S], succeed: Callable[[S], T], refuse: Callable[[KafkaError], T]
) -> Deferred[T]:
    """The answer that `succeed` makes of the value, or `refuse` of an expected error.

    Any other error, and any that these raise, fails the new answer too.
    """
    answer: Deferred[T] = Deferred()

    def settle(value: S | None, error: BaseException | None) -> None:
        try:
            if error is None:
                made = succeed(value)  # type: ignore[arg-type]
            elif isinstance(error, KafkaError):
                made = refuse(error)
            else:
                answer.fail(error)
                return
        except Exception as fault:  # noqa: BLE001 - who waits must not wait for ever
            answer.fail(fault)
            return
        answer.resolve(made)

    source.listen(settle)
    return answer


def after_success(source: Deferred[S], then: Callable[[], None]) -> Deferred[None]:
    """Done when `source` is, after a call of `then`; an error is handed on without it."""
    done: Deferred[None] = Deferred()

    def settle(_: S | None, error: BaseException | None) -> None:
        if error is None:
            then()
            done.resolve(None)
        else:
            done.fail(error)

    source.listen(settle)
    return done


def gather(answers: Sequence[T | Deferred[T]], join: Callable[[list[T]], R]) -> R | Deferred[R]:
    """`join` of all values in order: at once when none is deferred, else when the last is there.

    The first error of any part fails the whole.
    """
    values: list[T] = list(answers)  # type: ignore[arg-type]
    open_slots = [slot for slot, answer in enumerate(answers) if isinstance(answer, Deferred)]
    if not open_slots:
        return join(values)
    whole: Deferred[R] = Deferred()
    missing = len(open_slots)

    def settle(slot: int, value: T | None, error: BaseException | None) -> None:
        nonlocal missing
        missing -= 1
        if whole.settled:
            return
        if error is not None:
            whole.fail(error)
            return
        values[slot] = value  # type: ignore[assignment]
        if missing == 0:
            _resolve_joined(whole, join, values)

    for slot in open_slots:
        part = answers[slot]
        assert isinstance(part, Deferred)
        part.listen(partial(settle, slot))
    return whole


def all_of(parts: Sequence[Deferred[None]]) -> Deferred[None]:
    """Done when all parts are; the first error fails it."""
    open_parts: list[Deferred[None] | None] = list(parts)
    whole = gather(open_parts, lambda _: None)
    return whole if isinstance(whole, Deferred) else resolved(None)


def both(first: Deferred[S], second: Deferred[T], join: Callable[[S, T], R]) -> Deferred[R]:
    """`join` of two values when both are there; the first error fails it.

    Who lets go of the answer, or wants it soon, does so with both.
    """
    whole: Deferred[R] = Deferred()

    def first_came(value: S | None, error: BaseException | None) -> None:
        if error is None:
            second.listen(partial(second_came, value))
        else:
            whole.fail(error)

    def second_came(before: S | None, value: T | None, error: BaseException | None) -> None:
        if error is None:
            pair: tuple[S, T] = before, value  # type: ignore[assignment]
            _resolve_joined(whole, lambda _: join(*pair), [])
        else:
            whole.fail(error)

    def let_go() -> None:
        first.abandon()
        second.abandon()

    def hurry() -> None:
        first.hurry()
        second.hurry()

    first.listen(first_came)
    whole.when_abandoned(let_go)
    whole.when_hurried(hurry)
    return whole


def chain(*steps: Callable[[], Deferred[None] | None]) -> Deferred[None]:
    """Steps one after another, each once the one before is done; the first error ends it."""
    whole: Deferred[None] = Deferred()
    left = iter(steps)

    def go(_: None, error: BaseException | None) -> None:
        if error is not None:
            whole.fail(error)
            return
        for step in left:
            try:
                begun = step()
            except Exception as fault:  # noqa: BLE001 - handed on
                whole.fail(fault)
                return
            if begun is not None:
                begun.listen(go)
                return
        whole.resolve(None)

    go(None, None)
    return whole


def _resolve_joined(whole: Deferred[R], join: Callable[[list[T]], R], values: list[T]) -> None:
    try:
        joined = join(values)
    except Exception as error:  # noqa: BLE001 - handed on
        whole.fail(error)
    else:
        whole.resolve(joined)


async def wait_for(deferred: Deferred[T]) -> T:
    """For coroutines: the value, or the error raised."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def settle(value: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)  # type: ignore[arg-type]

    deferred.listen(settle)
    return await future
