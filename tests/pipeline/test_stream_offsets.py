"""How far a stream goes: fair, never stuck, never over the limit; topics made again are noticed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import DataLost
from pipeline.sources.bounds import Range
from pipeline.sources.partition_view import PartitionView
from pipeline.sources.stream_offsets import (
    begin_of,
    limited,
    offset_of,
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


def test_an_offset_is_that_of_spark_s_connector_and_the_topic_s_id() -> None:
    ends = {("t", 0): 17, ("t", 1): 4}

    assert offset_of([ONE, TWO], ends) == {"t": {"0": 17, "1": 4, "id": "aa"}}


def test_a_partition_that_was_added_begins_at_its_earliest() -> None:
    assert begin_of({"t": {"0": 17, "id": "aa"}}, TWO, fails_on_loss=True) == 0


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


def test_a_batch_reads_from_offset_to_offset() -> None:
    start, end = {"t": {"0": 20, "id": "aa"}}, {"t": {"0": 20, "1": 5, "id": "aa"}}

    assert ranges_between(start, end, [ONE, TWO], fails_on_loss=True) == [(TWO, Range(0, 4))]
    with pytest.raises(DataLost, match="made again"):
        ranges_between(start, {"t": {"0": 30, "id": "cc"}}, [ONE], fails_on_loss=True)
