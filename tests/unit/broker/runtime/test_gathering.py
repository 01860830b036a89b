"""Deferred answers put together: order kept, errors not lost, nothing settled twice."""

import asyncio

import pytest

from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after, gather, wait_for
from protocol.errors import ErrorCode, KafkaError


class Heard:
    """What a deferred's listener was told."""

    def __init__(self, deferred: "Deferred[str]") -> None:
        self.values: list[str | None] = []
        self.errors: list[BaseException | None] = []
        deferred.listen(self._hear)

    def _hear(self, value: str | None, error: BaseException | None) -> None:
        self.values.append(value)
        self.errors.append(error)


def test_values_that_are_there_are_joined_at_once() -> None:
    assert gather(["a", "b"], "".join) == "ab"


def test_the_order_is_the_one_asked_for_not_the_one_of_arrival() -> None:
    first: Deferred[str] = Deferred()
    last: Deferred[str] = Deferred()
    whole = gather([first, "b", last], "".join)
    assert isinstance(whole, Deferred)
    heard = Heard(whole)
    last.resolve("c")
    assert heard.values == []
    first.resolve("a")
    assert heard.values == ["abc"]


def test_the_first_error_fails_the_whole_and_later_parts_change_nothing() -> None:
    first: Deferred[str] = Deferred()
    last: Deferred[str] = Deferred()
    whole = gather([first, last], "".join)
    assert isinstance(whole, Deferred)
    heard = Heard(whole)
    first.fail(OSError("gone"))
    last.resolve("c")
    assert heard.values == [None]
    assert isinstance(heard.errors[0], OSError)


def test_an_error_of_the_join_reaches_the_listener() -> None:
    part: Deferred[str] = Deferred()

    def refuse(values: list[str]) -> str:
        raise LookupError(values[0])

    whole = gather([part], refuse)
    assert isinstance(whole, Deferred)
    heard = Heard(whole)
    part.resolve("a")
    assert isinstance(heard.errors[0], LookupError)


def test_after_turns_expected_errors_into_values_and_passes_others_on() -> None:
    def told(source: Deferred[int]) -> Heard:
        return Heard(after(source, str, lambda error: error.message))

    good: Deferred[int] = Deferred()
    refused: Deferred[int] = Deferred()
    broken: Deferred[int] = Deferred()
    answers = [told(source) for source in (good, refused, broken)]
    good.resolve(7)
    refused.fail(KafkaError(ErrorCode.INVALID_RECORD, "bad"))
    broken.fail(OSError("gone"))
    assert [answer.values for answer in answers] == [["7"], ["bad"], [None]]
    assert isinstance(answers[2].errors[0], OSError)


async def test_a_coroutine_can_wait() -> None:
    deferred: Deferred[str] = Deferred()
    asyncio.get_running_loop().call_soon(deferred.resolve, "there")
    assert await wait_for(deferred) == "there"


async def test_a_coroutine_meets_the_error() -> None:
    deferred: Deferred[str] = Deferred()
    deferred.fail(OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        await wait_for(deferred)
