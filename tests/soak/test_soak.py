"""The soak's verdict can be bad, and a short one of a healthy broker is good."""

import subprocess
import sys

import pytest

from tests.soak.oracle import RECORD, Numbers, missing_ends, slope_an_hour, stale_keys


def read(*records: tuple[int, int], may_repeat: bool = False) -> Numbers:
    """All of them from partition 0, as (partition, number) that they claim."""
    numbers = Numbers("r", may_repeat=may_repeat)
    for partition, number in records:
        numbers.saw(0, RECORD.pack(partition, number) + b"filling")
    return numbers


@pytest.mark.parametrize(
    ("records", "fault"),
    [
        ([(0, 5), (0, 6), (0, 8)], "r: partition 0: 7 to 7 are missing"),
        ([(0, 5), (0, 6), (0, 5)], "r: partition 0: 5 came again, after 6"),
        ([(0, 5), (1, 6)], "r: partition 0 has a record of 1"),
    ],
)
def test_a_loss_a_repetition_and_a_stray_are_faults(
    records: list[tuple[int, int]], fault: str
) -> None:
    assert read(*records).faults == [fault]


def test_a_group_may_read_again_but_not_miss() -> None:
    again = read((0, 0), (0, 1), (0, 0), (0, 1), (0, 2), may_repeat=True)
    assert (again.faults, again.repeated, again.records) == ([], 2, 5)
    assert read((0, 0), (0, 2), may_repeat=True).faults


def test_what_retention_removed_is_no_loss() -> None:
    numbers = read((0, 0))
    numbers.begin(0, 10)
    numbers.saw(0, RECORD.pack(0, 10))
    assert (numbers.faults, numbers.skipped) == ([], 9)


def test_the_scan_has_to_reach_what_was_acknowledged() -> None:
    assert missing_ends({0: 10, 1: 4}, {0: 10, 1: 4}) == []
    assert len(missing_ends({0: 10, 1: 4, 2: 1}, {0: 9, 1: 5})) == 2


def test_each_key_has_its_last_value_and_none_that_nobody_sent() -> None:
    assert stale_keys({b"a": 3}, {b"a": 5}, {b"a": 4}) == []
    assert len(stale_keys({b"a": 3, b"b": 0}, {b"a": 3, b"b": 0}, {b"a": 2})) == 2
    assert len(stale_keys({}, {b"a": 3}, {b"a": 4})) == 1


def test_the_slope_is_an_hour_s() -> None:
    assert slope_an_hour([(0, 10.0), (60, 11.0), (120, 12.0)]) == pytest.approx(60)
    assert slope_an_hour([(5, 1.0)]) == 0


@pytest.mark.slow
def test_a_short_soak_of_a_healthy_broker() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", "--minutes", "0.05"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert "verdict: every record as acknowledged, in order" in done.stdout
