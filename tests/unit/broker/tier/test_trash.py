"""Objects that are to be removed: when they are, and what becomes of those that were not."""

from collections.abc import Callable

import pytest

from broker.tier.trash import AT_ONCE, Removal, Trash
from storage.tier.port import StoreError
from tests.support.tier.faulty_store import Fault, FaultyStore, of_calls
from tests.support.tier.memory_store import MemoryStore


class World:
    """A store, a clock, and rounds as the broker has them: the first failure ends one."""

    def __init__(self, *faults: Fault | None) -> None:
        self.now = 0.0
        self.objects = MemoryStore()
        self.store = FaultyStore(self.objects, of_calls("delete", *faults))
        self.trash = Trash(self.store, lambda: self.now)

    def put(self, *keys: str, delay_ms: int = 0) -> None:
        for key in keys:
            self.objects.put_new(key, b"x")
        self.trash.put(keys, delay_ms)

    def round(self) -> float | None:
        """The wait after a failure; None without one."""
        while leaving := self.trash.take():
            try:
                self.trash.remove(leaving)
            except StoreError:
                return self.trash.put_back(leaving)
        return None

    def waits(self, count: int) -> list[float | None]:
        """Those of so many rounds, each when the one before it says."""
        found: list[float | None] = []
        for _ in range(count):
            found.append(self.round())
            self.now += found[-1] or 0
        return found


def test_objects_go_after_their_delay() -> None:
    world = World()
    world.put("a", delay_ms=5000)
    world.now = 4.9
    assert world.round() is None
    assert list(world.objects.objects) == ["a"]
    world.now = 5.0
    assert world.round() is None
    assert not world.objects.objects
    assert world.trash.removed_objects == 1
    assert not world.trash.names()


@pytest.mark.parametrize("fault", [Fault.LOST_BEFORE, Fault.LOST_AFTER, Fault.DENIED])
def test_a_failed_removal_is_tried_again_a_second_later(fault: Fault) -> None:
    world = World(fault)
    world.put("a", "b")
    assert world.round() == 1
    assert world.trash.names() == {"a", "b"}
    world.now = 0.9
    assert world.trash.take() is None
    world.now = 1.0
    assert world.round() is None
    assert not world.objects.objects
    assert world.trash.removed_objects == 2


def test_each_wait_is_twice_as_long_up_to_a_minute() -> None:
    world = World(*[Fault.LOST_BEFORE] * 9)
    world.put("a")
    assert world.waits(10) == [1, 2, 4, 8, 16, 32, 60, 60, 60, None]
    assert not world.objects.objects


def test_the_wait_has_its_limit_however_long_the_store_is_away() -> None:
    assert Removal(("a",), 1_000_000).retry_seconds == 60


def test_objects_that_cannot_be_removed_keep_no_others() -> None:
    world = World()
    refused: Callable[[str, str], Fault | None] = lambda operation, key: (  # noqa: E731
        Fault.DENIED if (operation, key) == ("delete", "kept") else None
    )
    world.store.script = refused
    world.put("kept")
    world.put("a")
    assert world.waits(3) == [1, 2, 4]
    assert list(world.objects.objects) == ["kept"]


def test_many_objects_go_in_requests_of_a_thousand() -> None:
    world = World(None, Fault.LOST_BEFORE)
    world.put(*(f"{number:05}" for number in range(AT_ONCE + 1)))
    assert world.round() == 1
    assert len(world.objects.objects) == 1
    world.now = 1.0
    assert world.round() is None
    assert not world.objects.objects
