# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="untyped-decorator,valid-type,no-any-return"
"""Bad times of a batch: on which side of the clock, and what they were meant to be.

Like `walk`, written once and run compiled or as it stands. What is judged is an outline of records
(`walk.outline_records`); each gets a verdict of one byte: 0 for a good one, else
`verdict_of(side, guess)`. A time of -1 is no time and has the side NO_TIME. Rules: time.md 2.
"""

from __future__ import annotations

from typing import NamedTuple

import cython

PAST, FUTURE, EXPIRED, FAR, NO_TIME = range(5)  # sides; the first two are out of bounds
BOUND, SECONDS, MICROSECONDS, NANOSECONDS, FILETIME, ZERO, NEGATIVE = range(7)  # guesses
GUESSES = 7
VERDICTS = 1 + 5 * GUESSES
BAD_VERDICTS = 1 + 2 * GUESSES  # verdicts from 1 to below this one are out of bounds
KEYLESS = 255  # the verdict on a record that lacks the key its topic asks for
TALLY_COLUMNS = 5

EIGHT = cython.declare(cython.Py_ssize_t, 8)  # numbers of an outline's row
HIGHEST = cython.declare(cython.longlong, 0x7FFF_FFFF_FFFF_FFFF)
FILETIME_EPOCH_MS = cython.declare(cython.longlong, -11_644_473_600_000)  # 1601-01-01
PLAUSIBLE_SINCE_MS = cython.declare(cython.longlong, 631_152_000_000)  # 1990-01-01
PLAUSIBLE_SPAN_MS = cython.declare(cython.longlong, 315_576_000_000)  # ten years from now


class Limits(NamedTuple):
    """Limits of times, in ms; all of them belong to the good times."""

    now: int
    low: int
    high: int
    oldest: int  # a time in bounds before this one has expired on arrival
    latest: int  # a time in bounds after this one is far in the future


class Tally(NamedTuple):
    """The records of one verdict: how many, first and last index, the worst time and its index."""

    count: int  # type: ignore[assignment]  # hides tuple.count
    first: int
    last: int
    worst: int
    worst_at: int


def verdict_of(side: int, guess: int) -> int:
    """Number of a verdict; `(verdict - 1) // GUESSES` and `% GUESSES` give both back."""
    return 1 + side * GUESSES + guess


def suspect(
    timestamp: cython.longlong, now: cython.longlong, low: cython.longlong, high: cython.longlong
) -> int:
    """The probable meaning of a bad time (ms).

    Of the units that bring it inside the bounds the one nearest to the clock wins; no guess leads
    further back than 1990 or further ahead than ten years. Zero and negative times have names.
    """
    return guess_at(timestamp, now, low, high)


def judge_times(  # noqa: PLR0917 - called by position, a chunk at a time
    outline: cython.const[cython.longlong][::1],
    first: cython.longlong,
    count: cython.Py_ssize_t,
    limits: Limits,
    verdicts: cython.uchar[::1],
    tally: cython.longlong[::1],
) -> None:
    """Judge `count` records, the first of which has the index `first` in its batch.

    A byte of `verdicts` for each; `tally` has a row of five numbers a verdict, in the order of
    `Tally`, and is added to.
    """
    now: cython.longlong = limits.now
    low: cython.longlong = limits.low
    high: cython.longlong = limits.high
    oldest: cython.longlong = limits.oldest
    latest: cython.longlong = limits.latest
    index: cython.Py_ssize_t
    row: cython.Py_ssize_t
    timestamp: cython.longlong
    side: cython.longlong
    verdict: cython.longlong
    for index in range(count):
        timestamp = outline[index * EIGHT + 6]
        side = side_of(timestamp, low, high, oldest, latest)
        if side < 0:
            verdicts[index] = 0
            continue
        verdict = 1 + side * 7 + guess_at(timestamp, now, low, high)
        verdicts[index] = verdict
        row = verdict * 5
        if tally[row] == 0:
            tally[row + 1] = first + index
        if tally[row] == 0 or (
            timestamp > tally[row + 3] if side & 1 else timestamp < tally[row + 3]
        ):
            tally[row + 3] = timestamp
            tally[row + 4] = first + index
        tally[row] += 1
        tally[row + 2] = first + index


def demand_keys(
    outline: cython.const[cython.longlong][::1],
    count: cython.Py_ssize_t,
    verdicts: cython.uchar[::1],
) -> None:
    """Give records without key the verdict KEYLESS, whatever their time (semantics.md 6.2)."""
    index: cython.Py_ssize_t
    for index in range(count):
        if outline[index * EIGHT + 7] < 0:
            verdicts[index] = 255


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def side_of(
    timestamp: cython.longlong,
    low: cython.longlong,
    high: cython.longlong,
    oldest: cython.longlong,
    latest: cython.longlong,
) -> cython.longlong:
    """Side of a time; -1 for a good one. Odd sides are ahead of the clock."""
    if timestamp == -1:
        return 4
    if timestamp < low:
        return 0
    if timestamp > high:
        return 1
    if timestamp < oldest:
        return 2
    if timestamp > latest:
        return 3
    return -1


@cython.cfunc
@cython.inline
@cython.cdivision(True)
@cython.exceptval(check=False)
def guess_at(
    timestamp: cython.longlong, now: cython.longlong, low: cython.longlong, high: cython.longlong
) -> cython.longlong:
    """See `suspect`."""
    reading: cython.longlong
    distance: cython.longlong
    guess: cython.longlong = 0
    nearest: cython.longlong = HIGHEST
    if timestamp <= 0:
        return 6 if timestamp else 5
    now = max(0, now)
    low = max(low, PLAUSIBLE_SINCE_MS)
    if now < HIGHEST - PLAUSIBLE_SPAN_MS:
        high = min(high, now + PLAUSIBLE_SPAN_MS)
    if timestamp <= HIGHEST // 1000:
        reading = timestamp * 1000
        if low <= reading <= high:
            guess, nearest = 1, abs(reading - now)
    reading = timestamp // 1000
    distance = abs(reading - now)
    if low <= reading <= high and distance < nearest:
        guess, nearest = 2, distance
    reading = timestamp // 1_000_000
    distance = abs(reading - now)
    if low <= reading <= high and distance < nearest:
        guess, nearest = 3, distance
    reading = timestamp // 10_000 + FILETIME_EPOCH_MS
    distance = abs(reading - now)
    if low <= reading <= high and distance < nearest:
        guess = 4
    return guess
