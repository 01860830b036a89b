"""The sweep: what nothing names goes in the second round, and nothing else ever does."""

from collections.abc import Iterator
from typing import Self
from uuid import UUID

import pytest

from storage.tier import orphans
from storage.tier.manifests.reading import read_newest
from storage.tier.names import PartitionKeys, object_of, probe_name
from storage.tier.orphans import OrphanSweep, SweepOrder, SweepReport, SweepStopped
from storage.tier.port import ObjectFacts, StoreError
from tests.support.disk.simenv import SimClock
from tests.support.records.logs import append
from tests.support.tier.faulty_store import Fault, FaultyStore, always, of_calls
from tests.support.tier.memory_store import MemoryStore
from tests.support.tier.tier_crash_world import judge_objects
from tests.support.tier.tier_life import NOW, TOPIC_ID, TierLife

DAY_MS = 86_400_000
KEYS = PartitionKeys("t", TOPIC_ID, 0)
OTHER = PartitionKeys("t", UUID(int=99), 3)
ORDER = SweepOrder(frozenset((TOPIC_ID,)), frozenset(), frozenset(), frozenset(), DAY_MS, 3600.0)


class Scene:
    """A partition that is copied, and rounds of the sweep, a day apart."""

    def __init__(self) -> None:
        self.clock = SimClock(NOW)
        self.objects = MemoryStore(self.clock.now_ms)
        self.store = FaultyStore(self.objects, lambda operation, key: None)
        self.life = TierLife(self.store, clock=self.clock)
        self.life.create()
        self.write()
        self.life.copy_all()
        assert self.life.remote is not None
        self.sweep = OrphanSweep(self.store, self.clock, self.life.remote.find)

    def write(self) -> None:
        for number in range(30):
            append(self.life.log, NOW + number, value=b"x" * 100)
        self.life.sync()

    def put(self, *keys: str) -> None:
        for key in keys:
            self.objects.put_new(key, b"lost")

    def round(self, order: SweepOrder = ORDER, *, after_ms: int = 2 * DAY_MS) -> SweepReport:
        self.clock.advance(after_ms)
        return self.sweep.round(order)

    def judge(self) -> None:
        """What the newest manifest names is there, whole."""
        newest = read_newest(self.objects, KEYS)
        assert newest is not None
        assert newest.segments
        judge_objects(self.objects, newest)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def segment(keys: PartitionKeys, unique: int, suffix: str = ".log") -> str:
    return keys.segment(0, f"{unique:016x}", suffix)


def test_what_nothing_names_goes_in_the_second_round(scene: Scene) -> None:
    lost = segment(KEYS, 1), segment(KEYS, 1, ".side"), probe_name(7)
    scene.put(*lost)
    before = set(scene.objects.objects)
    first = scene.round()
    assert first.orphans.objects == 3
    assert first.orphans.size_bytes == 12
    assert set(first.orphans.examples) == set(lost)
    assert first.removed.objects == 0
    assert set(scene.objects.objects) == before
    assert scene.round().removed.objects == 3
    assert set(scene.objects.objects) == before - set(lost)
    assert scene.round().orphans.objects == 0
    scene.judge()


def test_a_round_that_comes_at_once_removes_nothing(scene: Scene) -> None:
    scene.put(segment(KEYS, 1))
    scene.round()
    assert scene.round(after_ms=1000).removed.objects == 0
    assert scene.round(after_ms=3_600_000).removed.objects == 1


def test_what_is_not_a_day_old_is_no_orphan(scene: Scene) -> None:
    scene.clock.advance(2 * DAY_MS)
    scene.put(segment(KEYS, 1))
    assert scene.round(after_ms=DAY_MS - 1).orphans.objects == 0
    assert scene.round(after_ms=1).orphans.objects == 1


def test_what_was_named_lately_stays_for_the_delay_though_a_stop_has_forgotten_it(
    scene: Scene,
) -> None:
    """`file.delete.delay.ms` is how far a restore goes back behind a deletion."""
    days = 5
    life = TierLife(
        scene.objects, fs=scene.life.fs.after_kill(), clock=scene.clock, starts=1,
        file_delete_delay_ms=days * DAY_MS,
    )  # fmt: skip
    assert life.remote is not None
    scene.sweep = OrphanSweep(scene.objects, scene.clock, life.remote.find)
    scene.clock.advance(30 * DAY_MS)
    life.tiered.settle()
    life.remove_before(life.tiered.manifest.segments[1].end_offset)
    assert len(life.tiered.expire()) == 2
    removed = [scene.round(after_ms=DAY_MS).removed.objects for _ in range(days + 2)]
    assert removed == [0] * days + [4, 0], "found when the delay is over, removed a day later"
    scene.judge()


@pytest.mark.parametrize(
    "key",
    [
        "horolog.json", "cluster/00000000000000000001.json", "notes.txt", "wal/1/2/3",
        f"topics/t/{TOPIC_ID}/0/readme", f"topics/t/{TOPIC_ID}/0/1-2.log",
        f"topics/t/{TOPIC_ID}/01/{0:020d}-{1:016x}.log", f"topics/t/0/0/{0:020d}-{1:016x}.log",
        f"topics/t/{TOPIC_ID}/0/{0:020d}-{0xABC:016X}.log", "probe-xyz",
        KEYS.manifest(999_999),
    ],
)  # fmt: skip
def test_other_names_are_left_alone(scene: Scene, key: str) -> None:
    scene.put(key)
    scene.round()
    scene.round()
    assert key in scene.objects.objects


def test_a_copy_that_is_under_way_is_no_orphan(scene: Scene) -> None:
    scene.write()
    reports: list[SweepReport] = []
    now = ORDER._replace(least_age_ms=0, rest_seconds=0.0)
    assert scene.life.remote is not None
    scene.sweep = OrphanSweep(scene.objects, scene.clock, scene.life.remote.find)

    def sweeps(operation: str, key: str) -> None:
        if operation == "put_new":  # the manifest: its objects are there, and not named yet
            reports.extend(scene.round(now, after_ms=1) for _ in range(2))

    scene.store.script = sweeps
    scene.life.copy_next()
    assert reports
    assert not any(each.orphans.objects for each in reports)
    scene.judge()


def test_copies_that_are_named_together_are_no_orphans_before(scene: Scene) -> None:
    scene.write()
    scene.write()
    while scene.life.mirror_next() is not None:
        assert scene.round().orphans.objects == 0
    assert scene.round().orphans.objects == 0
    scene.judge()


def test_a_manifest_whose_answer_was_lost_may_be_there_and_names_its_segment(
    scene: Scene,
) -> None:
    scene.write()
    scene.store.script = of_calls("put_new", Fault.LOST_BEFORE)
    with pytest.raises(StoreError):
        scene.life.copy_next()
    scene.store.script = lambda operation, key: None
    assert scene.round().orphans.objects == 0
    assert scene.round().orphans.objects == 0
    scene.life.copy_all()
    scene.judge()


def test_what_another_is_about_to_remove_is_left_to_him(scene: Scene) -> None:
    key = segment(KEYS, 1)
    scene.put(key)
    order = ORDER._replace(spared=frozenset((key,)))
    assert scene.round(order).orphans.objects == 0


def test_partitions_with_another_writer_are_left_alone(scene: Scene) -> None:
    scene.put(segment(KEYS, 1))
    assert scene.round(ORDER._replace(stopped=frozenset((("t", 0),)))).orphans.objects == 0


@pytest.mark.parametrize("operation", ["list", "get", "delete"])
@pytest.mark.parametrize("fault", [Fault.LOST_BEFORE, Fault.LOST_AFTER])
def test_nothing_is_removed_before_all_was_seen(scene: Scene, operation: str, fault: Fault) -> None:
    lost = segment(KEYS, 1)
    scene.put(lost)
    scene.round()
    scene.store.script = always(fault, operation)
    with pytest.raises(StoreError):
        scene.round()
    assert lost in scene.objects.objects or (operation, fault) == ("delete", Fault.LOST_AFTER)
    scene.store.script = lambda operation, key: None
    scene.round()
    assert lost not in scene.objects.objects
    scene.judge()


def test_a_partition_whose_manifests_cannot_be_read_is_left_out(scene: Scene) -> None:
    newest = max(key for key in scene.objects.objects if key.startswith(KEYS.manifests))
    whole, lost = scene.objects.objects[newest], segment(KEYS, 1)
    scene.objects.objects[newest] = whole[:-5]
    scene.put(lost, probe_name(1))
    scene.sweep = OrphanSweep(scene.store, scene.clock, lambda keys: None)
    before = set(scene.objects.objects) - {probe_name(1)}
    assert scene.round().unreadable[0].startswith("t-0: ")
    assert scene.round().removed.objects == 1, "others were looked at"
    assert set(scene.objects.objects) == before
    scene.objects.objects[newest] = whole
    scene.round()
    assert scene.round().removed.examples == (lost,)
    scene.judge()


def test_a_store_that_has_lost_its_newest_manifest_is_not_believed(scene: Scene) -> None:
    newest = max(key for key in scene.objects.objects if key.startswith(KEYS.manifests))
    scene.put(segment(KEYS, 1))
    scene.objects.delete([newest])
    assert "is known here, and not in the store" in scene.round().unreadable[0]
    assert scene.round().removed.objects == 0


def test_all_of_a_deleted_topic_goes_and_is_forgotten(scene: Scene) -> None:
    deleted = ORDER._replace(live=frozenset(), deleted=frozenset((TOPIC_ID,)))
    count = len(scene.objects.objects)
    assert scene.round(deleted).orphans.objects == count
    assert scene.round(deleted).removed.objects == count
    assert not scene.objects.objects
    assert scene.round(deleted).forgotten == frozenset()
    assert scene.round(deleted).forgotten == {TOPIC_ID}


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_topic_that_exists_stays_whatever_else_is_said(scene: Scene, is_shared: bool) -> None:
    before = set(scene.objects.objects)
    both = ORDER._replace(deleted=frozenset((TOPIC_ID,)), is_shared=is_shared)
    assert TOPIC_ID in both.live
    for _ in range(3):
        assert not scene.round(both).orphans.objects
    assert set(scene.objects.objects) == before


def test_a_topic_that_is_not_known_is_shown_and_stays(scene: Scene) -> None:
    before = set(scene.objects.objects)
    unknown = ORDER._replace(live=frozenset())
    for _ in range(3):
        report = scene.round(unknown)
        assert report.unknown.objects == len(before)
        assert not report.orphans.objects
    assert set(scene.objects.objects) == before


def test_a_sweep_ends_when_the_broker_stops(scene: Scene) -> None:
    scene.put(segment(KEYS, 1))
    scene.round()
    scene.sweep.stop()
    with pytest.raises(SweepStopped):
        scene.round()
    assert segment(KEYS, 1) in scene.objects.objects


def test_no_more_names_are_kept_than_a_round_may(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphans, "MOST_REMEMBERED", 4)
    monkeypatch.setattr(orphans, "CHUNK", 3)
    scene.put(*(segment(KEYS, unique) for unique in range(10)))
    assert [scene.round().removed.objects for _ in range(8)] == [0, 4, 0, 4, 0, 2, 0, 0]
    scene.judge()


def test_the_list_is_never_in_memory_as_a_whole() -> None:
    """A hundred thousand objects of a hundred partitions: one chunk is alive at a time."""
    alive = most = 0

    class Counted(str):
        __slots__ = ()

        def __new__(cls, text: str) -> Self:
            nonlocal alive, most
            alive += 1
            most = max(most, alive)
            return super().__new__(cls, text)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    class Long(MemoryStore):
        def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectFacts]:
            for partition in range(100):
                keys = OTHER._replace(partition=partition)
                for unique in range(1000):
                    yield ObjectFacts(Counted(segment(keys, unique)), 1, 0)

    sweep = OrphanSweep(Long(), SimClock(NOW), _nothing)
    report = sweep.round(ORDER._replace(live=frozenset()))
    assert report.unknown.objects == 100_000
    assert most < 2 * 1000 + 100


def _nothing(keys: PartitionKeys) -> None:
    return None


def test_names_say_what_they_are_of() -> None:
    found = object_of(OTHER.segment(17, f"{5:016x}", ".side"))
    assert found is not None
    assert (found.keys, found.base_offset, found.unique) == (OTHER, 17, f"{5:016x}")
    manifest = object_of(OTHER.manifest(4))
    assert manifest is not None
    assert (manifest.keys, manifest.unique) == (OTHER, "")
    assert object_of("topics/") is None
