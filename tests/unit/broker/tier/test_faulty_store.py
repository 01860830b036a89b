"""The store of tests that fails by a script: what each fault does, and leaves."""

from collections import Counter

import pytest

from storage.tier.port import ObjectMissing, StoreDenied, StoreError
from tests.support.tier.faulty_store import (
    OPERATIONS,
    POSSIBLE,
    Fault,
    FaultyStore,
    Happened,
    always,
    by_seed,
    in_order,
    of_calls,
)
from tests.support.tier.memory_store import MemoryStore


@pytest.fixture
def inner() -> MemoryStore:
    store = MemoryStore()
    store.put_new("a/1", b"0123456789")
    store.put_new("a/2", b"x")
    return store


def test_a_request_that_is_lost_changes_nothing(inner: MemoryStore) -> None:
    store = FaultyStore(inner, always(Fault.LOST_BEFORE))
    for call in (
        lambda: store.put_new("b", b"1"),
        lambda: store.put_file("b", iter([b"1"]), 1),
        lambda: store.delete(["a/1"]),
        lambda: store.get("a/1"),
        lambda: list(store.list("a/")),
    ):
        with pytest.raises(StoreError):
            call()
    assert sorted(inner.objects) == ["a/1", "a/2"]


def test_an_answer_that_is_lost_comes_after_the_deed(inner: MemoryStore) -> None:
    store = FaultyStore(inner, always(Fault.LOST_AFTER, "put_new", "delete", "list"))
    with pytest.raises(StoreError):
        store.put_new("b", b"1")
    with pytest.raises(StoreError):
        store.delete(["a/1"])
    assert sorted(inner.objects) == ["a/2", "b"]
    found = store.list("")
    assert next(found).key == "a/2"
    with pytest.raises(StoreError):
        next(found)


def test_reads_are_short_wrong_or_of_nothing(inner: MemoryStore) -> None:
    script = in_order(Fault.HALF, Fault.OTHER_BYTES, Fault.OTHER_BYTES, Fault.OBJECT_GONE, None)
    store = FaultyStore(inner, script)
    assert store.get_range("a/1", 0, 8) == b"0123"
    for data in (store.get("a/1"), store.get_range("a/1", 0, 10)):
        changed = [one ^ other for one, other in zip(data, b"0123456789", strict=True)]
        assert sum(bits.bit_count() for bits in changed) == 1
    with pytest.raises(ObjectMissing):
        store.get("a/1")
    with pytest.raises(ObjectMissing):
        store.get("a/1")
    assert inner.objects.keys() == {"a/2"}


def test_refusals_have_their_kind_and_slow_calls_are_done(inner: MemoryStore) -> None:
    slept: list[int] = []
    script = of_calls("get", Fault.DENIED, Fault.THROTTLED, Fault.SLOW, key_has="a/2")
    store = FaultyStore(inner, script, sleep=lambda: slept.append(1))
    assert store.get("a/1") == b"0123456789"
    with pytest.raises(StoreDenied):
        store.get("a/2")
    with pytest.raises(StoreError, match="503 SlowDown"):
        store.get("a/2")
    assert store.get("a/2") == b"x"
    assert slept == [1]
    assert store.happened[-1] == Happened("get", "a/2", Fault.SLOW)


def test_a_seed_plays_the_same_faults_again() -> None:
    calls = [(operation, "a") for operation in OPERATIONS] * 500
    everything = frozenset(Fault)
    one, other, third = (by_seed(seed, 0.2, everything) for seed in (1, 1, 2))
    played = [one(*call) for call in calls]
    assert played == [other(*call) for call in calls]
    assert played != [third(*call) for call in calls]
    assert set(played) == {None, *Fault}
    assert 0.1 < 1 - Counter(played)[None] / len(calls) < 0.3
    assert all(
        fault is None or fault in POSSIBLE[call[0]]
        for fault, call in zip(played, calls, strict=True)
    )
