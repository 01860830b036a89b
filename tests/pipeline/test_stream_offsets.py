"""How far a stream goes: fair, never stuck, never over the limit; topics made again are noticed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import DataLost, NothingThere
from pipeline.sources.bounds import Range
from pipeline.sources.options import ReadOptions
from pipeline.sources.partition_view import PartitionView
from pipeline.sources.settled_views import SettledViews
from pipeline.spark.stream_offsets import (
    begin_of,
    carried,
    limited,
    offset_of,
    places_in,
    ranges_between,
    refuse_missing,
)

ONE = PartitionView("t", 0, "aa", 10, 90)
TWO = PartitionView("t", 1, "aa", 0, 50)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=6), st.integers(1, 200))
def test_shares_are_fair_and_keep_the_limit(lags: list[tuple[int, int]], most: int) -> None:
    ranges = [
        (PartitionView("t", index, "", 0, 0), begin, begin + lag)
        for index, (begin, lag) in enumerate(lags)
    ]
    total = sum(lag for _, lag in lags)

    ends = limited(ranges, most)

    shares = [ends["t", index] - begin for index, (begin, _) in enumerate(lags)]
    assert all(0 <= share <= lag for share, (_, lag) in zip(shares, lags, strict=True))
    assert sum(shares) == min(most, total)


@given(
    lags=st.lists(st.integers(0, 3000), min_size=1, max_size=9),
    rates=st.lists(st.integers(1, 400), min_size=9, max_size=9),
    most=st.integers(1, 30),
)
def test_no_partition_stands_still_under_steady_input(
    lags: list[int], rates: list[int], most: int
) -> None:
    """A model: every partition gets more all the time, and the limit is below what comes."""
    count = len(lags)
    begins, lengths = [0] * count, [lag + 1 for lag in lags]
    waits = [0] * count
    for _ in range(60):
        ranges = [
            (PartitionView("t", index, "", 0, 0), begins[index], lengths[index])
            for index in range(count)
        ]
        ends = limited(ranges, most)
        for index in range(count):
            end = ends["t", index]
            waits[index] = 0 if end > begins[index] else waits[index] + 1
            begins[index] = end
            lengths[index] += rates[index]
        assert max(waits) < -(-count // most), "each has its turn"


def test_an_offset_is_that_of_spark_s_connector_and_the_topic_s_id() -> None:
    ends = {("t", 0): 17, ("t", 1): 4}

    assert offset_of([ONE, TWO], ends) == {"t": {"0": 17, "1": 4, "id": "aa"}}


def test_a_partition_that_was_added_begins_at_its_earliest() -> None:
    assert begin_of({"t": {"0": 17, "id": "aa"}}, TWO, fails_on_loss=True) == 0


@pytest.mark.parametrize("start", [{"t": {"1": 17, "id": "aa"}}, {}])
def test_a_partition_that_was_added_and_has_lost_its_begin_is_told(
    start: dict[str, dict[str, object]],
) -> None:
    """As with Spark's connector: nobody has read what retention took of it."""
    with pytest.raises(DataLost, match="t-0: offsets from 0 to before 10 are gone"):
        begin_of(start, ONE, fails_on_loss=True)
    assert begin_of(start, ONE, fails_on_loss=False) == 10


@pytest.mark.parametrize(
    ("start", "told", "otherwise"),
    [
        ({"t": {"0": 17, "id": "bb"}}, "t-0: its topic was deleted and made again", 10),
        ({"t": {"0": 3, "id": "aa"}}, "t-0: offsets from 3 to before 10 are gone", 10),
        ({"t": {"0": 99}}, "t-0: it was read up to 99 and ends at 90 now", 99),
    ],
)
def test_a_loss_is_told_or_passed_over(
    start: dict[str, dict[str, object]], told: str, otherwise: int
) -> None:
    with pytest.raises(DataLost, match=told):
        begin_of(start, ONE, fails_on_loss=True)
    assert begin_of(start, ONE, fails_on_loss=False) == otherwise


def test_a_partition_that_is_gone_is_told() -> None:
    with pytest.raises(DataLost, match="t-1 was read before and is gone"):
        refuse_missing({"t": {"0": 1, "1": 2, "id": "aa"}}, [ONE])


def test_a_partition_that_is_missing_for_a_while_keeps_its_position() -> None:
    start = {"t": {"0": 17, "1": 20, "id": "aa"}, "u": {"0": 5, "id": "cc"}}
    made = offset_of([ONE], {("t", 0): 30})

    assert carried(start, made) == {
        "t": {"0": 30, "1": 20, "id": "aa"},
        "u": {"0": 5, "id": "cc"},
    }
    assert begin_of(carried(start, made), TWO, fails_on_loss=False) == 20
    again = offset_of([ONE._replace(topic_id="bb")], {("t", 0): 12})
    assert carried(start, again)["t"] == {"0": 12, "id": "bb"}, "of another topic"


def test_a_batch_that_was_planned_is_not_left_out_in_silence() -> None:
    start, end = {"t": {"0": 20, "1": 9, "id": "aa"}}, {"t": {"0": 30, "1": 9, "id": "aa"}}

    assert ranges_between(end, end, [], fails_on_loss=True) == []
    with pytest.raises(DataLost, match="t-0 is gone before its records were read"):
        ranges_between(start, end, [TWO], fails_on_loss=True)
    assert ranges_between(start, end, [TWO], fails_on_loss=False) == []


class Flickering:
    """A broker that knows a partition only from the third question on, or never."""

    def __init__(self, knows_from: float) -> None:
        self.seconds, self.knows_from, self.asked = 0.0, knows_from, 0
        self.partitions = SettledViews(
            ReadOptions(), self.look, now=lambda: self.seconds, sleep=self.sleep
        )

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def look(self, _: ReadOptions) -> list[PartitionView]:
        self.asked += 1
        return [ONE, TWO] if self.seconds >= self.knows_from else [ONE]


def test_a_partition_that_is_missing_is_waited_for_once() -> None:
    both = places_in({"t": {"0": 1, "1": 2, "id": "aa"}})
    soon, never = Flickering(3), Flickering(1e9)

    assert soon.partitions.now(both) == [ONE, TWO]
    assert 3 <= soon.seconds < 4
    assert never.partitions.now(both) == [ONE]
    waited, asked = never.seconds, never.asked
    assert waited >= 30
    assert never.partitions.now(both) == [ONE]
    assert (never.seconds, never.asked) == (waited, asked + 1), "not again"
    never.knows_from = 0
    assert never.partitions.now(both) == [ONE, TWO]


def test_a_topic_that_is_missing_for_a_while_is_waited_for() -> None:
    calls = iter(range(9))

    def look(_: ReadOptions) -> list[PartitionView]:
        if next(calls) < 2:
            raise NothingThere("the topic 't' is not there")
        return [ONE]

    partitions = SettledViews(ReadOptions(), look, now=lambda: 0.0, sleep=lambda _: None)
    assert partitions.now({("t", 0)}) == [ONE]


@pytest.mark.parametrize(
    "options",
    [
        ReadOptions(topics=("t", "u"), fails_on_loss=False),
        ReadOptions(assigned={"t": (0,), "u": (0,)}, fails_on_loss=False),
    ],
)
def test_a_topic_that_is_gone_does_not_end_the_others(options: ReadOptions) -> None:
    seconds = [0.0]

    def look(asked: ReadOptions) -> list[PartitionView]:
        if asked.takes("u"):
            raise NothingThere("the topic 'u' is not there")
        return [ONE] if asked.takes("t") else []

    def sleep(passed: float) -> None:
        seconds[0] += passed

    partitions = SettledViews(options, look, now=lambda: seconds[0], sleep=sleep)
    wanted = {("t", 0), ("u", 0)}

    assert partitions.now(wanted) == [ONE]
    assert seconds[0] >= 30, "it was waited for"
    waited = seconds[0]
    assert partitions.now(wanted) == [ONE]
    assert partitions.now() == [ONE]
    assert seconds[0] == waited, "once"


def test_a_topic_that_never_was_is_told_at_once() -> None:
    def look(_: ReadOptions) -> list[PartitionView]:
        raise NothingThere("the topic 't' is not there")

    with pytest.raises(NothingThere):
        SettledViews(ReadOptions(), look, sleep=lambda _: pytest.fail("it waited")).now()


def test_a_batch_reads_from_offset_to_offset() -> None:
    start, end = {"t": {"0": 20, "id": "aa"}}, {"t": {"0": 20, "1": 5, "id": "aa"}}

    assert ranges_between(start, end, [ONE, TWO], fails_on_loss=True) == [(TWO, Range(0, 4))]
    with pytest.raises(DataLost, match="made again"):
        ranges_between(start, {"t": {"0": 30, "id": "cc"}}, [ONE], fails_on_loss=True)


def test_a_batch_of_a_topic_that_was_made_again_reads_nothing_of_the_new_one() -> None:
    """The next batch begins with it: its records would come twice."""
    start, end = {"t": {"0": 20, "id": "old"}}, {"t": {"0": 30, "id": "old"}}

    assert ranges_between(start, end, [ONE], fails_on_loss=False) == []
    assert begin_of(end, ONE, fails_on_loss=False) == ONE.start_offset


def test_a_batch_that_begins_with_the_new_topic_waits_for_it() -> None:
    start, end = {"t": {"0": 50, "id": "old"}}, {"t": {"0": 30, "id": "aa"}}

    assert places_in(end, start) == {("t", 0)}
    assert ranges_between(start, end, [ONE], fails_on_loss=False) == [(ONE, Range(10, 29))]
