"""A settled deferred holds nothing: memory of an answer goes when the answer went."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from broker.runtime.deferred import Deferred


class Large:
    """Something that one can watch."""


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


class Holder:
    """As a parked request: it holds the deferred that holds it."""

    def __init__(self, deferred: Deferred[Large]) -> None:
        self.deferred = deferred
        deferred.when_abandoned(self.leave)
        deferred.listen(self.hear)

    def hear(self, value: Large | None, error: BaseException | None) -> None: ...

    def leave(self) -> None: ...


@pytest.mark.parametrize("how", ["early", "late", "error"])
def test_what_was_told_is_let_go(how: str) -> None:
    value = Large()
    gone = weakref.ref(value)
    deferred: Deferred[Large] = Deferred()
    if how == "early":
        deferred.resolve(value)
    holder = Holder(deferred)
    holder_gone = weakref.ref(holder)
    if how == "late":
        deferred.resolve(value)
    elif how == "error":
        deferred.fail(ValueError(value))
    del value, deferred, holder
    assert gone() is None
    assert holder_gone() is None
