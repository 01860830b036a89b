"""Instants and durations as people write them and as JSON answers carry them.

An instant is milliseconds since 1970, ISO-8601 (without a zone: UTC), `now`, or relative to now:
`-1h`, `+5m`. A duration is a number of milliseconds or has a unit: ms, s, m, h, d. Pure.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import TypedDict

from config.values import LONG_MAX, Number

_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)
_RELATIVE = re.compile(r"[+-]\d+\s*[a-z]+", re.ASCII | re.IGNORECASE)
_DURATION = Number(-LONG_MAX, LONG_MAX, "ms")
_EPOCH = datetime.fromtimestamp(0, UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Instant(TypedDict):
    """A time in an answer. `iso` is None for a time that no calendar shows."""

    ms: int
    iso: str | None


def parse_instant(text: str, now_ms: int) -> int:
    """Milliseconds since 1970; ValueError with a sentence that says what is understood."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return _bounded(int(text))
    if text.lower() == "now":
        return now_ms
    if _RELATIVE.fullmatch(text):
        return _bounded(now_ms + parse_duration(text))
    try:
        found = datetime.fromisoformat(_with_plus(text))
    except ValueError:
        raise ValueError(
            f"{text!r} is no time: write milliseconds since 1970, ISO-8601 such as "
            "2026-01-31T12:00:00Z, now, or a time from now such as -1h"
        ) from None
    aware = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MILLISECOND


def parse_duration(text: str) -> int:
    """Milliseconds, negative ones too; ValueError with a sentence."""
    return _DURATION.parse(text)


def iso(ms: int) -> str | None:
    """ISO-8601 in UTC to the millisecond; None beyond the years 1 to 9999."""
    try:
        found = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return None
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def instant(ms: int) -> Instant:
    """A time as answers carry it."""
    return {"ms": ms, "iso": iso(ms)}


def instant_or_none(ms: int | None) -> Instant | None:
    """As `instant`; None for what is not there: no number, or a negative one."""
    return None if ms is None or ms < 0 else instant(ms)


def _with_plus(text: str) -> str:
    """In a query string a plus sign that is not escaped arrives as a blank."""
    day, mark, time = text.partition("T")
    return f"{day}T{time.replace(' ', '+')}" if mark else text


def _bounded(ms: int) -> int:
    if not -LONG_MAX <= ms <= LONG_MAX:
        raise ValueError(f"{ms} is out of bounds: a time has 64 bits")
    return ms
