"""How much a share partition with a delay takes in: its stored state has to fit a record."""

from broker.share.states import ACKNOWLEDGED, AVAILABLE, Run, ShareRules
from broker.share.waits import delayed
from broker.share.waits.delayed import DelayedRecords
from broker.share.window import InFlightBatch, InFlightWindow

RULES = ShareRules()


def parted(count: int) -> InFlightWindow:
    """A free record, and behind it one batch with so many runs."""
    window = InFlightWindow(0)
    window.append(InFlightBatch(0, 0, [Run(0, 0, AVAILABLE, 1)]))
    runs = [Run(at, at, ACKNOWLEDGED, 1 + at % 2) for at in range(1, count + 1)]
    window.append(InFlightBatch(1, count, runs))
    return window


def test_many_runs_in_one_batch_leave_no_room() -> None:
    assert DelayedRecords(parted(delayed.MOST_RUNS), 0).room(RULES) == 0


def test_few_runs_leave_room() -> None:
    assert DelayedRecords(parted(1000), 0).room(RULES) == RULES.max_record_locks - 1


def test_a_record_comes_when_nothing_else_is_open() -> None:
    window = parted(delayed.MOST_RUNS)
    window.change(0, 0, lambda run: Run(run.first, run.last, ACKNOWLEDGED, 3))
    assert DelayedRecords(window, 0).room(RULES) == RULES.max_record_locks
