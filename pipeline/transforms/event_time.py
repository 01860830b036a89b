"""Credible record times, the likely meaning of the others, and the day they fall on.

Pure, over columns of milliseconds. The detective that names a bad time is the broker's own
(`protocol.records.mistimed`, time.md 2), so that an archive says of a record what the broker said.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from protocol.records.batch import NO_TIMESTAMP
from protocol.records.mistimed import BAD_VERDICTS, TALLY_COLUMNS, VERDICTS, Limits, judge_times
from storage.timestamps import Direction
from storage.validation.dirty_timestamps import reasons

DAY_MS = 86_400_000
_OUTLINE_NUMBERS, _TIME_AT = 8, 6
_AT_ONCE = 65_536
_REASONS = reasons()

Times = NDArray[np.int64]
Mask = NDArray[np.bool_]


class TimeLimits(NamedTuple):
    """Limits of record times, in ms; both ends are good."""

    now_ms: int
    low_ms: int
    high_ms: int


def is_good(times: Times, limits: TimeLimits) -> Mask | None:
    """Mask of the credible times; None: all of them."""
    if not len(times):
        return None
    if int(times.min()) >= max(0, limits.low_ms) and int(times.max()) <= limits.high_ms:
        return None
    good: Mask = (times >= limits.low_ms) & (times <= limits.high_ms) & (times != NO_TIMESTAMP)
    return None if good.all() else good


def reasons_of(times: Times, limits: TimeLimits) -> list[str]:
    """Of times that cannot be believed, why: `past: seconds`, `future: microseconds`, `none`."""
    found: list[str] = []
    held = Limits(limits.now_ms, limits.low_ms, limits.high_ms, limits.low_ms, limits.high_ms)
    for first in range(0, len(times), _AT_ONCE):
        some = times[first : first + _AT_ONCE]
        outline = np.zeros((len(some), _OUTLINE_NUMBERS), np.int64)
        outline[:, _TIME_AT] = some
        verdicts = np.zeros(len(some), np.uint8)
        tally = np.zeros(VERDICTS * TALLY_COLUMNS, np.int64)
        judge_times(outline.reshape(-1), first, len(some), held, verdicts, tally)
        found += map(_reason, verdicts.tolist())
    return found


def days_of(times: Times) -> Times:
    """Days since 1970, in UTC."""
    return np.floor_divide(times, DAY_MS)


def _reason(verdict: int) -> str:
    return _REASONS[verdict] if verdict < BAD_VERDICTS else str(Direction.NONE)
