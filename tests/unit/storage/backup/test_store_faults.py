"""Back-ups to a store that fails: what was answered counts, what was spoilt never does."""

import pytest

from storage.errors import StorageError
from storage.tier.port import StoreDenied
from tests.support.backup.backup_world import (
    KEYED,
    PLAIN,
    TOPICS,
    BackupWorld,
    content_of,
    restored,
)
from tests.support.tier.faulty_store import (
    Fault,
    FaultyStore,
    always,
    by_seed,
    of_calls,
)
from tests.support.tier.memory_store import MemoryStore

FAULTS = frozenset(
    (
        Fault.LOST_BEFORE,
        Fault.LOST_AFTER,
        Fault.THROTTLED,
        Fault.HALF,
        Fault.OTHER_BYTES,
    )
)


@pytest.fixture
def world() -> BackupWorld:
    made = BackupWorld({name: TOPICS[name] for name in (PLAIN, KEYED)})
    made.fill_all(9)
    made.sync()
    return made


def test_runs_until_one_comes_through(world: BackupWorld) -> None:
    happened = 0
    for seed in range(40):
        store = MemoryStore(world.clock.now_ms)
        faulty = FaultyStore(store, by_seed(seed, 0.06, FAULTS))
        for _ in range(30):
            try:
                world.back_up(faulty)
            except StorageError:
                continue
            break
        else:
            raise AssertionError("none comes through")
        happened += len(faulty.happened)
        assert content_of(restored(world, store)[0]) == world.content()
        world.clock.advance(1000)
        world.fill(3)
        world.sync()
    assert happened > 60


def test_a_spoilt_object_is_sent_again(world: BackupWorld) -> None:
    store = MemoryStore(world.clock.now_ms)
    faulty = FaultyStore(store, of_calls("get_range", Fault.OTHER_BYTES, key_has=".log"))
    pauses: list[float] = []
    world.back_up(faulty, pause=pauses.append)
    assert [each.fault for each in faulty.happened] == [Fault.OTHER_BYTES]
    assert pauses
    assert content_of(restored(world, store)[0]) == world.content()


def test_a_store_that_denies_is_not_asked_again(world: BackupWorld) -> None:
    faulty = FaultyStore(MemoryStore(world.clock.now_ms), always(Fault.DENIED, "put_file"))
    pauses: list[float] = []
    with pytest.raises(StoreDenied):
        world.back_up(faulty, pause=pauses.append)
    assert len(faulty.happened) == 1
    assert not [each for each in pauses if each > 0.5]


def test_a_store_that_stays_away_ends_the_run(world: BackupWorld) -> None:
    faulty = FaultyStore(MemoryStore(world.clock.now_ms), always(Fault.LOST_BEFORE, "put_file"))
    pauses: list[float] = []
    with pytest.raises(StorageError):
        world.back_up(faulty, pause=pauses.append)
    assert sum(pauses) > 20
