"""A put of a process that was killed reaches the store after the next process has looked there."""

from uuid import UUID

import pytest

from storage.env import Buffer
from storage.tier.cluster_picture import TOPICS_FILE, Content, PictureWriter, newest
from storage.tier.manifests.manifest import Manifest, render_full
from storage.tier.manifests.reading import read_newest
from storage.tier.names import CLUSTER, PartitionKeys, number_of, numbered
from storage.tier.orphans import OrphanSweep, SweepOrder
from storage.tier.port import StoreAway
from storage.tier.single_writer import MOST_LOST, LatePut, WriterReplaced
from tests.support.disk.simenv import SimClock
from tests.support.tier.memory_store import MemoryStore
from tests.support.tier.tier_life import TOPIC_ID, TierLife
from tests.unit.storage.tier.test_tier_starts import fill, offsets

KEYS = PartitionKeys("t", TOPIC_ID, 0)
PICTURES = [
    Content("cluster", 1, {TOPICS_FILE: f'{{"format": 1, "topics": {number}}}\n'})
    for number in range(3)
]


class LateStore(MemoryStore):
    """Puts of manifests and pictures may stay on their way."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = False
        self.under_way: list[tuple[str, bytes]] = []

    def put_new(self, key: str, data: Buffer) -> None:
        if self.holds:
            self.under_way.append((key, bytes(data)))
            raise StoreAway(key, "put_new", "the connection ended before the answer did")
        super().put_new(key, data)

    def arrive(self) -> None:
        """They do, those of which the names are free."""
        for key, data in self.under_way:
            if key not in self.objects:
                super().put_new(key, data)
        self.under_way.clear()


def killed_while_it_puts(*, moved: bool) -> tuple[TierLife, LateStore]:
    """A life after its start, and a manifest that is on its way; `moved`: one more came before."""
    store = LateStore()
    life = TierLife(store)
    life.create()
    fill(life, 40)
    if moved:
        assert life.copy_next() is not None
    store.holds = True
    with pytest.raises(StoreAway):
        life.copy_next()
    store.holds = False
    assert len(store.under_way) == 1
    life.kill()
    life.tiered.settle()
    return life, store


@pytest.mark.parametrize("moved", [False, True])
def test_copying_goes_on_behind_it(moved: bool) -> None:
    life, store = killed_while_it_puts(moved=moved)
    store.arrive()
    with pytest.raises(LatePut, match="an earlier process has made it"):
        life.copy_next()
    life.copy_all()
    life.drop()
    assert life.log.snapshot.first_local == len(life.log.snapshot.segments) - 1
    assert offsets(life) == list(range(40))
    found = read_newest(store, KEYS)
    assert found is not None
    rows = [(row.base_offset, row.end_offset) for row in found.segments]
    assert [end for _, end in rows[:-1]] == [base for base, _ in rows[1:]]
    life.kill()
    assert offsets(life) == list(range(40))
    _judge_names(life, store)


def _judge_names(life: TierLife, store: MemoryStore) -> None:
    """What nothing names goes with the sweep, and nothing else."""
    assert life.remote is not None
    sweep = OrphanSweep(store, life.clock, life.remote.find)
    order = SweepOrder(frozenset((TOPIC_ID,)), *[frozenset[UUID]()] * 3, 0, 0.0)  # type: ignore[arg-type]
    assert sweep.round(order).orphans.objects == 2, "the copy that lost its place"
    assert sweep.round(order).removed.objects == 2
    assert offsets(life) == list(range(40))


def test_it_does_not_come_once_the_next_process_has_put_one() -> None:
    life, store = killed_while_it_puts(moved=True)
    life.copy_all()
    before = dict(store.objects)
    store.arrive()
    assert store.objects == before
    life.copy_all()
    assert offsets(life) == list(range(40))


def test_nothing_leaves_the_directory_while_it_could_still_come() -> None:
    """It may take out of the manifest what the next process lets go."""
    store = LateStore()
    life = TierLife(store)
    life.create()
    fill(life, 40)
    life.copy_all()
    store.holds = True
    with pytest.raises(StoreAway):
        life.tiered.withdraw()
    store.holds = False
    life.kill()
    life.copy_all()
    life.drop()
    store.arrive()
    life.kill()
    life.copy_all()
    assert offsets(life) == list(range(40))


class Rival(MemoryStore):
    """Another process takes each number just before this one does."""

    def put_new(self, key: str, data: Buffer) -> None:
        number = number_of(key)
        assert number is not None
        super().put_new(key, render_full(Manifest(number, *KEYS, writer="rival")))
        super().put_new(key, data)


def test_who_loses_one_number_after_the_other_stops() -> None:
    life = TierLife(Rival())
    life.create()
    fill(life, 40)
    for _ in range(MOST_LOST):
        with pytest.raises(LatePut):
            life.copy_next()
    with pytest.raises(WriterReplaced):
        life.copy_next()


def test_who_has_put_one_stops_when_another_does() -> None:
    store = MemoryStore()
    one, other = TierLife(store), TierLife(store)
    for life in (one, other):
        life.create()
        fill(life, 40)
    other.restart()  # another generator of random names
    other.tiered.settle()
    one.copy_next()
    with pytest.raises(LatePut):
        other.copy_next()
    other.copy_next()
    with pytest.raises(WriterReplaced):
        one.copy_next()
    other.copy_all()


# --- pictures of the cluster ---


def test_a_picture_that_comes_late_is_followed_by_the_next_one() -> None:
    store, clock = LateStore(), SimClock()
    first, killed, after = (PictureWriter(store, clock) for _ in range(3))
    first.write_if_changed(PICTURES[0])
    store.holds = True
    with pytest.raises(StoreAway):
        killed.write_if_changed(PICTURES[1])
    store.holds = False
    assert not after.write_if_changed(PICTURES[0])
    store.arrive()
    with pytest.raises(LatePut):
        after.write_if_changed(PICTURES[2])
    assert after.write_if_changed(PICTURES[2])
    assert list(store.objects) == [numbered(CLUSTER, number) for number in (1, 2, 3)]
    found = newest(store)
    assert found is not None
    assert found.content == PICTURES[2]
    with pytest.raises(WriterReplaced):
        first.write_if_changed(PICTURES[2])
