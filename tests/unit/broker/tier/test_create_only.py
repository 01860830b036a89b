"""The proof, at a start, that a store makes an object only where there is none."""

from collections.abc import Iterator

import pytest

from broker.access.store.refusals import CreateOnlyIgnored
from broker.tier.create_only import prove_create_only
from storage.env import Buffer
from storage.tier.port import ObjectExists, ObjectStore, StoreError
from tests.support.tier.faulty_store import Fault, FaultyStore, of_calls
from tests.support.tier.memory_store import MemoryStore


class Overwriting(MemoryStore):
    """A store that does not know If-None-Match."""

    def put_new(self, key: str, data: Buffer) -> None:
        self.put_file(key, self._once(data), len(data))

    @staticmethod
    def _once(data: Buffer) -> Iterator[Buffer]:
        yield data


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_a_store_that_refuses_the_second_put_passes(store: MemoryStore) -> None:
    prove_create_only(store, "probe")
    assert store.objects == {}


def test_a_store_that_overwrites_is_refused_and_left_clean() -> None:
    store = Overwriting()
    with pytest.raises(CreateOnlyIgnored, match="two brokers would write one tier"):
        prove_create_only(store, "probe")
    assert store.objects == {}


def test_an_object_of_another_is_not_removed(store: MemoryStore) -> None:
    store.put_new("probe", b"of another")
    with pytest.raises(ObjectExists):
        prove_create_only(store, "probe")
    assert store.get("probe") == b"of another"


@pytest.mark.parametrize("fault", [Fault.LOST_BEFORE, Fault.LOST_AFTER, Fault.THROTTLED])
@pytest.mark.parametrize("call", [0, 1])
def test_a_failure_proves_nothing(store: MemoryStore, fault: Fault, call: int) -> None:
    faulty: ObjectStore = FaultyStore(store, of_calls("put_new", *[None] * call, fault))
    with pytest.raises(StoreError):
        prove_create_only(faulty, "probe")
    assert store.objects.keys() <= {"probe"}
