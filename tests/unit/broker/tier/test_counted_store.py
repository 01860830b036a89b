"""Requests, bytes and errors of a store, as they are counted."""

from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

import pytest

from broker.runtime.probes import MAX_TOPICS, OTHERS
from broker.tier.counted_store import CountedStore
from broker.tier.store_account import (
    Purpose,
    RequestKind,
    StoreAccount,
    StoreFault,
    StoreRequest,
    TopicKind,
    fault_of,
)
from storage.tier.names import CARD, PartitionKeys, numbered, probe_name
from storage.tier.port import (
    ObjectExists,
    ObjectMissing,
    StoreAway,
    StoreDenied,
    StoreError,
    StoreThrottled,
    StoreTimedOut,
)
from tests.support.tier.faulty_store import Fault, FaultyStore, always, in_order
from tests.support.tier.memory_store import MemoryStore

KEYS = PartitionKeys("t", UUID(int=1), 0)
LOG, SIDE = (KEYS.segment(0, f"{1:016x}", suffix) for suffix in (".log", ".side"))
MIB = 1024 * 1024


class World:
    """A store in memory that fails by a script, counted, and a clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.store = FaultyStore(MemoryStore(), in_order())
        self.account = StoreAccount(lambda: self.now)

    def of(self, purpose: Purpose) -> CountedStore:
        return CountedStore(self.store, self.account, purpose)

    def topic(self, kind: TopicKind) -> int:
        return self.account.by_topic(kind).get("t", 0)


@pytest.fixture
def world() -> World:
    return World()


def test_a_segment_that_goes_and_comes(world: World) -> None:
    copies, reads = world.of(Purpose.COPY), world.of(Purpose.READ)
    copies.put_file(LOG, iter([b"12345"]), 5)
    copies.put_file(SIDE, iter([b"678"]), 3)
    assert copies.get_range(LOG, 0, 5) == b"12345"
    assert reads.get_range(LOG, 1, 2) == b"23"
    assert world.account.requests == {
        (Purpose.COPY, StoreRequest.PUT): 2,
        (Purpose.COPY, StoreRequest.GET): 1,
        (Purpose.READ, StoreRequest.GET): 1,
    }
    assert world.account.size_bytes == {
        (Purpose.COPY, StoreRequest.PUT): 8,
        (Purpose.COPY, StoreRequest.GET): 5,
        (Purpose.READ, StoreRequest.GET): 2,
    }
    assert world.topic(TopicKind.COPIES) == 1
    assert world.topic(TopicKind.COPIED_BYTES) == 8
    assert (world.topic(TopicKind.READS), world.topic(TopicKind.READ_BYTES)) == (1, 2)


@pytest.mark.parametrize(
    ("size", "requests"), [(0, 1), (8 * MIB, 1), (8 * MIB + 1, 4), (100_000 * MIB, 10_002)]
)
def test_a_large_object_takes_a_request_for_each_part(
    world: World, size: int, requests: int
) -> None:
    with suppress(StoreError):
        world.of(Purpose.COPY).put_file(LOG, iter([]), size)
    assert world.account.requests == {(Purpose.COPY, StoreRequest.PUT): requests}


def test_names_tell_what_is_the_clusters_and_what_is_a_manifest(world: World) -> None:
    store = world.of(Purpose.SWEEP)
    for key in (CARD, numbered("cluster/", 1), probe_name(5), KEYS.manifest(1)):
        store.put_new(key, b"1")
        store.get(key)
    store.delete([probe_name(5)])
    list(store.list(KEYS.manifests))
    list(store.list(""))
    assert world.account.requests == {
        (Purpose.CLUSTER, StoreRequest.PUT): 3,
        (Purpose.CLUSTER, StoreRequest.GET): 3,
        (Purpose.CLUSTER, StoreRequest.DELETE): 1,
        (Purpose.MANIFEST, StoreRequest.PUT): 1,
        (Purpose.MANIFEST, StoreRequest.GET): 1,
        (Purpose.MANIFEST, StoreRequest.LIST): 1,
        (Purpose.SWEEP, StoreRequest.LIST): 1,
    }


@pytest.mark.parametrize(("objects", "requests"), [(0, 1), (1000, 1), (1001, 2), (2000, 2)])
def test_a_list_and_a_removal_are_a_request_for_each_thousand(
    world: World, objects: int, requests: int
) -> None:
    keys = [KEYS.segment(number, f"{1:016x}", ".log") for number in range(objects)]
    for key in keys:
        world.store.put_new(key, b"")
    assert len(list(world.of(Purpose.SWEEP).list(""))) == objects
    assert world.account.requests == {(Purpose.SWEEP, StoreRequest.LIST): requests}
    world.of(Purpose.REMOVAL).delete(keys)
    asked = RequestKind(Purpose.REMOVAL, StoreRequest.DELETE)
    assert world.account.requests.get(asked, 0) == (requests if objects else 0)
    assert world.topic(TopicKind.DELETIONS) == objects


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (StoreAway, StoreFault.AWAY),
        (StoreTimedOut, StoreFault.TIMED_OUT),
        (StoreThrottled, StoreFault.THROTTLED),
        (StoreDenied, StoreFault.DENIED),
        (ObjectMissing, StoreFault.LOST),
        (StoreError, StoreFault.REFUSED),
    ],
)
def test_each_error_has_its_kind(error: type[StoreError], fault: StoreFault) -> None:
    assert fault_of(error("a", "get", "no")) is fault


@pytest.mark.parametrize(
    ("request_kind", "call"),
    [
        (StoreRequest.PUT, lambda store: store.put_new(KEYS.manifest(1), b"")),
        (StoreRequest.PUT, lambda store: store.put_file(LOG, iter([b""]), 0)),
        (StoreRequest.GET, lambda store: store.get(KEYS.manifest(1))),
        (StoreRequest.GET, lambda store: store.get_range(LOG, 0, 1)),
        (StoreRequest.GET, lambda store: list(store.pieces(LOG, 0, 1))),
        (StoreRequest.LIST, lambda store: list(store.list(""))),
        (StoreRequest.DELETE, lambda store: store.delete([LOG])),
    ],
)
def test_a_failed_request_is_counted_with_its_error(
    world: World, request_kind: StoreRequest, call: Callable[[CountedStore], object]
) -> None:
    world.store.script = always(Fault.THROTTLED)
    with pytest.raises(StoreThrottled):
        call(world.of(Purpose.READ))
    assert sum(world.account.requests.values()) == 1
    assert world.account.errors == {(request_kind, StoreFault.THROTTLED): 1}
    assert world.account.size_bytes == {}


def test_errors_of_a_topic(world: World) -> None:
    world.store.script = always(Fault.LOST_BEFORE)
    calls: list[Callable[[], object]] = [
        lambda: world.of(Purpose.COPY).put_file(LOG, iter([b""]), 0),
        lambda: world.of(Purpose.READ).get_range(LOG, 0, 1),
        lambda: world.of(Purpose.REMOVAL).delete([LOG, SIDE]),
    ]
    for call in calls:
        with pytest.raises(StoreAway):
            call()
    for kind in (TopicKind.FAILED_COPIES, TopicKind.FAILED_READS, TopicKind.FAILED_DELETIONS):
        assert world.topic(kind) == 1


def test_the_time_of_failures_in_a_row(world: World) -> None:
    store = world.of(Purpose.CLUSTER)
    store.put_new("cluster/1", b"1")
    world.now = 10.0
    assert world.account.failing_seconds == 0
    world.store.script = in_order(Fault.LOST_BEFORE, Fault.DENIED)
    for _ in range(2):
        with pytest.raises(StoreError):
            store.get("cluster/1")
        world.now += 5
    assert world.account.failing_seconds == 10
    store.get("cluster/1")
    assert world.account.failing_seconds == 0


def test_refusals_that_are_answers_are_no_sign_of_a_store_that_is_away(world: World) -> None:
    store = world.of(Purpose.MANIFEST)
    world.store.script = in_order(Fault.LOST_BEFORE)
    with pytest.raises(StoreAway):
        store.put_new("a", b"1")
    world.now = 7.0
    store.put_new("a", b"1")
    with pytest.raises(ObjectExists):
        store.put_new("a", b"1")
    with pytest.raises(ObjectMissing):
        store.get("b")
    assert world.account.failing_seconds == 0
    assert world.account.errors == {
        (StoreRequest.PUT, StoreFault.AWAY): 1,
        (StoreRequest.GET, StoreFault.LOST): 1,
    }


def test_topics_beyond_a_bound_share_a_number(world: World) -> None:
    for number in range(MAX_TOPICS + 20):
        key = PartitionKeys(f"t{number}", UUID(int=1), 0).segment(0, f"{1:016x}", ".log")
        world.account.of_topic(key, TopicKind.READS, 2)
    found = world.account.by_topic(TopicKind.READS)
    assert len(found) == MAX_TOPICS + 1
    assert found[OTHERS] == 40
