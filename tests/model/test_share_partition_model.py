"""A share partition against a dictionary of records; and that the search finds planted faults."""

from collections.abc import Callable
from typing import Any

import pytest

from broker.share import partition, window
from broker.share.acknowledge import Acknowledgement
from broker.share.states import ARCHIVED, AVAILABLE, LetterWrite, Run
from broker.share.waits import backoff, delayed, wheel
from broker.share.window import InFlightWindow
from tests.support.histories.share_play import play

HISTORIES = 150
MOST_HISTORIES = 400
"""Of which one must show a planted fault."""


def test_the_partition_does_as_the_dictionary() -> None:
    for seed in range(HISTORIES):
        play(seed)


@pytest.mark.parametrize("seed", [2102765, 2107364])
def test_writes_that_fail_do_not_fill_the_window(seed: int) -> None:
    """Records came into the place of others that a write was about to finish; then it failed."""
    play(seed)


def test_a_part_that_the_start_has_passed_gives_nothing() -> None:
    """A member got a range that ends before it begins."""
    play(2125901)


def merged_over_holes(runs: list[Run]) -> list[Run]:
    out = [runs[0]]
    for run in runs[1:]:
        if run[2:] == out[-1][2:]:
            out[-1] = out[-1]._replace(last=run.last)
        else:
            out.append(run)
    return out


def undone_from_the_start_on(self: Any, write: Any) -> None:
    kept = [batch for batch in write.batches if batch.first > self.start]
    write.batches = kept
    REAL_FAILED(self, write)


def nobody_is_asked(self: Any, run: Run) -> None:
    assert run.lock is not None


def free_while_written(run: Run) -> bool:
    return run.state == AVAILABLE


def always_free(run: Run, limit: int) -> int:
    return AVAILABLE


def free_before_time(run: Run) -> bool:
    return run.state == AVAILABLE and not run.is_pending


def as_long_each_time(rules: Any, deliveries: int) -> int:
    least: int = min(rules.retry_backoff_ms, rules.retry_backoff_max_ms)
    return least


def a_little_early(self: Any, now_ms: int, most: int) -> Any:
    return REAL_TAKE(self, now_ms + 3, most)


def what_is_lost_still_waits(self: Any, offset: int) -> int:
    waiting = self.waiting
    lost: int = REAL_STARTS_AT(self, offset)
    self.waiting = waiting
    return lost


def start_over_holes(self: InFlightWindow) -> None:
    REAL_ADVANCE(self)
    runs = [run for batch in self.batches for run in batch.runs if run.first >= self.start]
    if runs and runs[0].is_finished:
        self.cut(runs[0].last + 1)


def ended_without_a_letter(self: Any, run: Run, reason: str, *, counts: bool) -> Run:
    REAL_GIVE_UP(self, run, reason, counts=counts)
    return Run(run.first, run.last, ARCHIVED, run.deliveries)


def given_up(run: Run, limit: int) -> int:
    return ARCHIVED


REAL_GIVE_UP = LetterWrite.give_up
REAL_TAKE = wheel.DueWheel.take
REAL_STARTS_AT = delayed.DelayedRecords.log_starts_at
REAL_ADVANCE = InFlightWindow.advance
REAL_FAILED = partition.SharePartition.failed
PLANTED: list[tuple[object, str, object]] = [
    (window, "merged", merged_over_holes),
    (partition.SharePartition, "failed", undone_from_the_start_on),
    (Acknowledgement, "_check", nobody_is_asked),
    (Run, "is_free", property(free_while_written)),
    (Run, "is_free", property(free_before_time)),
    (partition.SharePartition, "wait_over", lambda self, wait: None),
    (backoff, "retry_after_ms", as_long_each_time),
    (wheel.DueWheel, "take", a_little_early),
    (LetterWrite, "give_up", ended_without_a_letter),
    (partition.SharePartition, "_letters", lambda self: None),
    (delayed.DelayedRecords, "log_starts_at", what_is_lost_still_waits),
    (InFlightWindow, "advance", start_over_holes),
    (InFlightWindow, "join_finished", lambda self, first, last: self.put(0, 1, [])),
    (partition, "released", always_free),
    (partition, "released", given_up),
    (InFlightWindow, "became_free", lambda self, first, last: None),
]


@pytest.mark.parametrize(("where", "name", "planted"), PLANTED)
def test_a_planted_fault_is_found(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str, planted: Callable[..., object]
) -> None:
    monkeypatch.setattr(where, name, planted)
    assert any(is_found(seed) for seed in range(MOST_HISTORIES))


def is_found(seed: int) -> bool:
    try:
        play(seed)
    except Exception:  # noqa: BLE001 - a fault may show itself in any way
        return True
    return False
