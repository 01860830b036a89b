"""The wheel gives offsets at their time: by time, then by offset, none early, none lost."""

import random
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from broker.share.waits.wheel import LAST_MS, Due, DueWheel

NOW = 1_700_000_000_000
WAITS = st.integers(0, 3000) | st.integers(0, 10**6) | st.integers(0, 10**10) | st.just(LAST_MS)


@given(st.lists(WAITS, max_size=30), st.lists(st.integers(0, 10**9), max_size=20), st.data())
def test_as_a_sorted_list(waits: list[int], passes: list[int], data: st.DataObject) -> None:
    wheel, waiting, now = DueWheel(NOW), list[Due](), NOW
    dues = [Due(NOW + wait, index * 10, index * 10) for index, wait in enumerate(waits)]
    for passed in [*passes, 2 * LAST_MS]:
        some = data.draw(st.integers(0, len(dues)))
        for due in dues[:some]:
            wheel.add(due)
        waiting, dues = sorted(waiting + dues[:some]), dues[some:]
        most = data.draw(st.integers(1, 4))
        next_ms = wheel.next_ms()
        assert (next_ms is None) == (not waiting)
        assert next_ms is None or next_ms <= waiting[0].at_ms
        now += passed
        expected = [due for due in waiting if due.at_ms <= now][:most]
        assert wheel.take(now, most) == expected
        waiting = waiting[len(expected) :]
        assert len(wheel) == len(waiting)


def test_an_entry_counts_its_offsets() -> None:
    wheel = DueWheel(NOW)
    wheel.add(Due(NOW + 5, 0, 9))
    wheel.add(Due(NOW + 5, 10, 10))
    wheel.add(Due(NOW + 6, 11, 11))
    assert wheel.take(NOW + 6, 5) == [Due(NOW + 5, 0, 9)]
    assert wheel.take(NOW + 5, 5) == [Due(NOW + 5, 10, 10)]
    assert wheel.take(NOW + 6, 0) == []
    assert wheel.take(NOW + 6, 5) == [Due(NOW + 6, 11, 11)]


def test_what_is_not_wanted_goes() -> None:
    wheel = DueWheel(NOW)
    for index in range(100):
        wheel.add(Due(NOW + index * 5000, index, index))
    assert len(wheel.take(NOW + 5000, 1)) == 1
    wheel.keep(lambda due: due.first % 10 == 0)
    assert [due.first for due in wheel.take(2 * LAST_MS, 100)] == list(range(10, 100, 10))
    assert len(wheel) == 0


def test_a_million_waiting_take_less_than_40_mb() -> None:
    """Measured with a tenth of them."""
    dice, wheel = random.Random(1), DueWheel(NOW)
    tracemalloc.start()
    for offset in range(100_000):
        wheel.add(Due(NOW + dice.randrange(7 * 86_400_000), offset, offset))
    size_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(wheel) == 100_000
    assert size_bytes < 4_000_000
