"""Manifests that only a restore to a time long ago needs: which go, and who may not come back."""

from collections.abc import Iterator

import pytest

from storage.tier.manifests import reading
from storage.tier.manifests.chain import ManifestChain
from storage.tier.manifests.manifest import Change, Manifest, render_delta, render_full
from storage.tier.manifests.past import past_manifests
from storage.tier.manifests.reading import ManifestsRemoved, read_newest
from storage.tier.names import EpochKeys, PartitionKeys, number_of
from storage.tier.orphans import OrphanSweep, SweepOrder, SweepReport
from storage.tier.single_writer import WriterReplaced
from tests.support.disk.simenv import SeededRng, SimClock
from tests.support.records.logs import append
from tests.support.tier.memory_store import MemoryStore
from tests.support.tier.often_full import often_full
from tests.support.tier.tier_life import NOW, TOPIC_ID, TierLife
from tests.unit.storage.tier.test_tier_starts import offsets

HOUR_MS = 3_600_000
KEYS = PartitionKeys("t", TOPIC_ID, 0)
KEPT_HOURS = 5
ORDER = SweepOrder(
    frozenset((TOPIC_ID,)), frozenset(), frozenset(), frozenset(), 0, 0.0,
    past_ms=KEPT_HOURS * HOUR_MS,
)  # fmt: skip


class Hours:
    """A partition of which a segment is copied each hour; every third manifest is full."""

    def __init__(self) -> None:
        self.clock = SimClock(NOW)
        self.store = MemoryStore(self.clock.now_ms)
        self.life = TierLife(self.store, clock=self.clock)
        self.life.create()

    def copy(self, hours: int) -> None:
        for _ in range(hours):
            append(self.life.log, self.clock.now_ms(), value=b"x" * 100)
            self.life.log.roll()
            self.life.sync()
            self.life.copy_all()
            self.clock.advance(HOUR_MS)

    def numbers(self) -> list[int]:
        found = (number_of(each.key) for each in self.store.list(KEYS.manifests))
        return [each for each in found if each is not None]

    def sweep(self, order: SweepOrder = ORDER) -> SweepReport:
        assert self.life.remote is not None
        return OrphanSweep(self.store, self.clock, self.life.remote.find).round(order)


@pytest.fixture
def hours() -> Iterator[Hours]:
    with often_full():
        found = Hours()
        found.copy(14)
        assert found.numbers() == list(range(1, 15))
        yield found


def test_those_before_the_last_full_one_of_the_time_that_is_kept_go(hours: Hours) -> None:
    report = hours.sweep()
    assert hours.numbers() == [10, 11, 12, 13, 14]
    assert report.past.objects == 9
    assert report.orphans.objects == 0
    assert hours.sweep().past.objects == 0
    assert offsets(hours.life) == list(range(14))


def test_every_moment_since_then_can_be_restored(hours: Hours) -> None:
    before = {at: read_newest(hours.store, KEYS, NOW + at * HOUR_MS) for at in range(14)}
    hours.sweep()
    kept = 14 - KEPT_HOURS
    for at in range(kept, 14):
        assert read_newest(hours.store, KEYS, NOW + at * HOUR_MS) == before[at]


def test_an_earlier_moment_is_refused_and_not_taken_for_an_empty_log(hours: Hours) -> None:
    hours.sweep()
    with pytest.raises(ManifestsRemoved, match="manifests of that time were removed"):
        read_newest(hours.store, KEYS, NOW + HOUR_MS)


def test_a_time_before_the_first_one_is_that_of_an_empty_log(hours: Hours) -> None:
    assert read_newest(hours.store, KEYS, NOW - HOUR_MS) is None


def test_what_was_put_once_a_clock_that_was_ahead_is_right_again_is_of_its_time() -> None:
    """One manifest has a time of the next day; those behind it were put before then."""
    clock, store = SimClock(NOW), MemoryStore()
    chain = ManifestChain(store, KEYS, clock, SeededRng(1))

    def put(first: int, end: int) -> None:
        for start in range(first, end):
            clock.advance(1000)
            chain.append(Change(log_start_offset=start))

    put(1, 5)
    before = clock.now_ms()
    clock.step(24 * HOUR_MS)
    put(5, 6)
    clock.step(-24 * HOUR_MS)
    put(6, 20)
    for at_ms, start in ((before, 4), (clock.now_ms(), 19), (clock.now_ms() + 25 * HOUR_MS, 19)):
        found = read_newest(store, KEYS, at_ms)
        assert found is not None
        assert found.log_start_offset == start


def test_a_moment_takes_the_memory_of_few_manifests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those from after the moment are looked at one by one, however many there are."""
    clock, store = SimClock(NOW), MemoryStore()
    chain = ManifestChain(store, KEYS, clock, SeededRng(1))
    with often_full():
        for start in range(1, 40):
            chain.append(Change(log_start_offset=start))
            clock.advance(1000)
        kept: list[int] = []
        replayed = reading._replayed

        def noted(keys: PartitionKeys, first: int, data: list[bytes]) -> Manifest:
            kept.append(len(data))
            return replayed(keys, first, data)

        monkeypatch.setattr(reading, "_replayed", noted)
        found = read_newest(store, KEYS, NOW + 5500)
    assert found is not None
    assert found.number == 6
    assert kept == [3], "its own full one and those up to it"


def test_none_goes_where_all_are_kept(hours: Hours) -> None:
    assert hours.sweep(ORDER._replace(past_ms=None)).past.objects == 0
    assert hours.numbers() == list(range(1, 15))


def test_none_goes_of_a_partition_whose_newest_cannot_be_read(hours: Hours) -> None:
    hours.store.objects[KEYS.manifest(14)] = b"?"
    report = hours.sweep()
    assert hours.numbers() == list(range(1, 15))
    assert "t-0" in report.unreadable[0]


def test_none_goes_where_the_full_one_cannot_be_read(hours: Hours) -> None:
    hours.store.objects[KEYS.manifest(10)] = b"?"
    report = hours.sweep()
    assert hours.numbers() == list(range(1, 15))
    assert "t-0" in report.unreadable[0]


def test_none_goes_where_a_number_does_not_say_that_it_is_full() -> None:
    """Of a release that wrote them in other places."""
    found = Hours()
    found.copy(14)
    with often_full():
        assert found.sweep().past.objects == 0
    assert found.numbers() == list(range(1, 15))


def test_none_goes_of_a_topic_that_is_not_known(hours: Hours) -> None:
    assert hours.sweep(ORDER._replace(live=frozenset())).past.objects == 0
    assert hours.sweep(ORDER._replace(stopped=frozenset((("t", 0),)))).past.objects == 0
    assert hours.numbers() == list(range(1, 15))


def test_a_directory_that_knows_one_that_went_reads_on(hours: Hours) -> None:
    path = f"{hours.life.log.files.path}/horolog-remote"
    old = Hours()
    old.copy(2)
    known = old.life.fs.read_bytes(path)
    hours.sweep(ORDER._replace(past_ms=0))
    assert hours.numbers() == [13, 14]
    hours.life.fs.write_atomically(path, known)
    hours.life.kill()
    hours.life.tiered.settle()
    assert hours.life.tiered.manifest.number == 14


def test_a_process_that_was_stopped_so_long_learns_that_it_is_not_alone(hours: Hours) -> None:
    """Its number is free again: what it puts there may not count."""
    stopped = TierLife(hours.store, fs=hours.life.fs.after_kill(), clock=hours.clock, starts=1)
    append(stopped.log, hours.clock.now_ms(), value=b"x" * 100)
    stopped.log.roll()
    stopped.sync()
    stopped.copy_all()
    assert stopped.tiered.manifest.number == 15
    chain = stopped.tiered._chain
    hours.life.kill()
    hours.copy(14)
    hours.sweep(ORDER._replace(past_ms=0))
    assert 16 not in hours.numbers()
    with pytest.raises(WriterReplaced, match="another writer has made a later one"):
        chain.append(Change())
    with pytest.raises(WriterReplaced):
        chain.settle()
    newest = read_newest(hours.store, KEYS)
    assert newest is not None
    assert newest.number == hours.life.tiered.manifest.number


def test_in_a_fleet_those_of_what_the_rows_name_stay() -> None:
    keys, store = EpochKeys(KEYS, 3), MemoryStore()
    state = Manifest(0, *KEYS)
    with often_full():
        for number in range(1, 12):
            state = state._replace(number=number)
            is_whole = number % 3 == 1
            data = render_full(state) if is_whole else render_delta(state, Change())
            store.put_new(keys.manifest(number), data)
        found = list(store.list(keys.manifests))
        past = past_manifests(store, keys, found, 0, counts=9)
    assert [number_of(each.key) for each in past] == [1, 2, 3, 4, 5, 6]
