"""Pictures of the cluster that only a restore to a time long ago needs: which go."""

import pytest

from storage.tier.cluster_picture import TOPICS_FILE, Content, PictureWriter, newest
from storage.tier.names import CLUSTER, number_of, numbered
from storage.tier.orphans import OrphanSweep, SweepOrder, SweepReport
from tests.support.disk.simenv import SimClock
from tests.support.tier.memory_store import MemoryStore

DAY_MS = 86_400_000
NOW = 1_700_000_000_000
DAYS = 14
KEPT_DAYS = 5
ORDER = SweepOrder(
    frozenset(), frozenset(), frozenset(), frozenset(), DAY_MS, 0.0, past_ms=KEPT_DAYS * DAY_MS
)


class Days:
    """A cluster with new topics each day, and so with a new picture."""

    def __init__(self) -> None:
        self.clock = SimClock(NOW)
        self.store = MemoryStore(self.clock.now_ms)
        self.pictures = PictureWriter(self.store, self.clock)
        self._put = 0

    def pass_by(self, days: int) -> None:
        for _ in range(days):
            self._put += 1
            self.pictures.write_if_changed(Content("cluster", 1, {TOPICS_FILE: f"{self._put}"}))
            self.clock.advance(DAY_MS)

    def numbers(self) -> list[int]:
        found = (number_of(each.key) for each in self.store.list(CLUSTER))
        return [each for each in found if each is not None]

    def sweep(self, order: SweepOrder = ORDER) -> SweepReport:
        return OrphanSweep(self.store, self.clock, lambda keys: None).round(order)


@pytest.fixture
def days() -> Days:
    found = Days()
    found.pass_by(DAYS)
    assert found.numbers() == list(range(1, DAYS + 1))
    return found


def test_those_before_the_last_one_of_the_time_that_is_kept_go(days: Days) -> None:
    now_ms = days.clock.now_ms()
    moments = [now_ms - KEPT_DAYS * DAY_MS + hour * DAY_MS // 24 for hour in range(KEPT_DAYS * 24)]
    before = [newest(days.store, at_ms) for at_ms in moments]
    assert days.sweep().past.objects == 9
    assert days.numbers() == [10, 11, 12, 13, 14]
    assert [newest(days.store, at_ms) for at_ms in moments] == before
    assert days.sweep().past.objects == 0


def test_the_newest_one_stays_however_old_and_the_next_one_comes_behind_it(days: Days) -> None:
    days.clock.advance(100 * DAY_MS)
    days.sweep()
    assert days.numbers() == [DAYS]
    days.pass_by(1)
    assert days.numbers() == [DAYS, DAYS + 1]


def test_none_goes_where_all_are_kept_or_where_they_are_of_a_fleet(days: Days) -> None:
    assert days.sweep(ORDER._replace(past_ms=None)).past.objects == 0
    assert days.sweep(ORDER._replace(is_shared=True)).past.objects == 0
    assert len(days.numbers()) == DAYS


def test_none_goes_where_the_last_one_of_back_then_cannot_be_read(days: Days) -> None:
    days.store.objects[numbered(CLUSTER, 10)] = b"?"
    report = days.sweep()
    assert report.past.objects == 0
    assert CLUSTER in report.unreadable[0]


def test_none_goes_where_a_clock_that_was_ahead_has_put_the_last_one_of_back_then() -> None:
    """By the time in it it does not count yet at the begin of what is kept."""
    days = Days()
    days.pass_by(9)
    days.clock.step(30 * DAY_MS)
    days.pass_by(1)
    days.store.modified_ms[numbered(CLUSTER, 10)] -= 30 * DAY_MS
    days.clock.step(-30 * DAY_MS)
    days.pass_by(4)
    assert days.sweep().past.objects == 0
    assert days.numbers() == list(range(1, DAYS + 1))
