"""The verdict of a run of a fleet can be bad."""

from collections import Counter
from collections.abc import Mapping

import pytest

from tests.soak.copier import copies
from tests.soak.fleet.clients import PARTITIONS, Heard, Place
from tests.soak.fleet.verdict import Waits, verdict

FOUND = {Place(0, 0): "1:0", Place(1, 0): "1:1", Place(0, 1): "2:0"}
ONE = Heard(1, 2, {Place(0, 0): "1:0", Place(1, 0): "1:1"}, [])
TWO = Heard(2, 1, {Place(0, 1): "2:0"}, [])
SEEN = set(FOUND.values())


def test_a_run_without_faults_has_none() -> None:
    assert verdict([ONE, TWO], 0, FOUND, SEEN) == []


def test_a_record_that_was_never_acknowledged_may_be_there_and_must_be_in_the_end() -> None:
    unheard = TWO._replace(places={})
    assert verdict([ONE, unheard], 0, FOUND, SEEN) == []
    lost = {place: value for place, value in FOUND.items() if value != "2:0"}
    assert verdict([ONE, unheard], 0, lost, SEEN) == ["2:0 is not there"]


@pytest.mark.parametrize(
    ("producers", "unanswered", "found", "seen", "fault"),
    [
        ([ONE, TWO], 0, {**FOUND, Place(1, 0): "2:0"}, SEEN, "1:1 is not at"),
        ([ONE, TWO], 0, {**FOUND, Place(5, 9): "1:0"}, SEEN, "1:0 is there 2 times"),
        ([ONE, TWO], 0, {**FOUND, Place(5, 9): "9:9"}, SEEN, "nobody sent 9:9"),
        ([ONE, TWO], 0, FOUND, SEEN - {"2:0"}, "the group has not read 2:0"),
        ([ONE, TWO], 3, FOUND, SEEN, "3 records were never answered"),
        ([ONE, TWO._replace(refused=["too large"])], 0, FOUND, SEEN, "refused: too large"),
    ],
)
def test_each_broken_promise_is_named(
    producers: list[Heard],
    unanswered: int,
    found: dict[Place, str],
    seen: set[str],
    fault: str,
) -> None:
    assert any(each.startswith(fault) for each in verdict(producers, unanswered, found, seen))


def test_a_copy_has_each_value_once() -> None:
    sent = {"1:0", "1:1", "2:0"}
    assert copies(Counter(sent), sent) == []
    assert copies(Counter(["1:0", "1:0", "9:9"]), sent) == [
        "1:0 was copied 2 times",
        "1:1 was not copied",
        "2:0 was not copied",
        "nobody sent 9:9, which was copied",
    ]


class Answered:
    """A producer that was answered."""

    def __init__(self, began: float, seconds: Mapping[int, float]) -> None:
        self.acknowledged_at = {
            each: [(began - 9, began - 8), (began - 1, began + 1), (began, began + wait)]
            for each, wait in seconds.items()
        }


def test_the_time_to_the_next_acknowledgement_is_of_the_slowest_partition() -> None:
    """A record that was sent before the fault says nothing, whenever its answer came."""
    waits = Waits()
    waits.happens("a fault")
    [(_, began)] = waits.began
    fast = Answered(began, dict.fromkeys(range(PARTITIONS), 2.0))
    slow = Answered(began, {**dict.fromkeys(range(PARTITIONS), 3.0), 5: 30.0})
    assert waits.of([slow])["a fault"] == [pytest.approx(30)]
    assert waits.of([slow, fast])["a fault"] == [pytest.approx(2)]
    assert waits.slowest([slow]) == ["30.0 s: fault 1, a fault, partition 5"]
