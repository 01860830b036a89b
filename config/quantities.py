"""Durations, sizes, counts and instants: the one place that reads and writes them. Pure.

A duration is milliseconds or has a unit: ms, s, m or min, h, d. A size is bytes or has a unit: KiB
and so on for powers of two, KB for powers of ten. An instant is milliseconds since 1970, ISO-8601
(without a zone: UTC), `now`, or relative to now: `-1h`, `+5m`. Parsers raise ValueError with a
sentence. The time page writes spans, sizes and counts the same way (`page/words.js`).
"""

import re
from datetime import UTC, datetime, timedelta
from typing import TypedDict

NOTHING = "-"
"""Stands in a column for an instant that there is none of."""
LONG_MAX = 2**63 - 1
UNITS = {
    "ms": {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000},
    "bytes": {
        "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
        "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    },
    "": {},
}  # fmt: skip
"""Units that are read, by the smallest one of their kind."""
_SPANS = {"y": 31_557_600_000, "d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1000}
_SIZES = {f"{letter}iB": 1 << 10 * power for power, letter in enumerate("KMGTPE", 1)}
_QUANTITY = re.compile(r"([+-]?\d+)\s*([A-Za-z]*)", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)
_RELATIVE = re.compile(r"[+-]\d+\s*[a-z]+", re.ASCII | re.IGNORECASE)
_EPOCH = datetime.fromtimestamp(0, UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Instant(TypedDict):
    """A time in an answer. `iso` is None for a time that no calendar shows."""

    ms: int
    iso: str | None


def parse_quantity(text: str, unit: str, bare: int = 1) -> int:
    """Whole number in multiples of `bare`; `unit` is a key of `UNITS`, a bare number has none.
    Raises ValueError.
    """
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a whole number")
    number, given, known = int(match[1]), match[2].lower(), UNITS[unit]
    if not given:
        return number
    if given not in known:
        allowed = ", ".join(known) or "a number without unit"
        raise ValueError(f"{text!r} has a unit that does not fit: use {allowed}")
    total, rest = divmod(number * known[given], bare)
    if rest:
        raise ValueError(f"{text!r} is not a whole multiple of {bare} {unit}")
    return total


def parse_duration(text: str) -> int:
    """Milliseconds, negative ones too. Raises ValueError."""
    value = parse_quantity(text, "ms")
    if not -LONG_MAX <= value <= LONG_MAX:
        raise ValueError(f"{value} is out of bounds: {-LONG_MAX} to {LONG_MAX}")
    return value


def parse_instant(text: str, now_ms: int) -> int:
    """Milliseconds since 1970. Raises ValueError."""
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


def second(ms: int | None) -> str:
    """To the second, `2026-01-31T12:00:00Z`; milliseconds beyond the calendar; a dash for none."""
    if ms is None:
        return NOTHING
    text = iso(ms)
    return f"{ms} ms" if text is None else f"{text[:19]}Z"


def span(ms: int) -> str:
    """A duration in its two largest units: `6 d 23 h`; below a second in ms.

    A year has 365.25 days.
    """
    sign, left = "-" if ms < 0 else "", abs(ms)
    if left < _SPANS["s"]:
        return f"{sign}{left} ms"
    parts: list[str] = []
    for unit, one in _SPANS.items():
        count, left = divmod(left, one)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
    return sign + " ".join(each for each in parts[:2] if each)


def size(count: int) -> str:
    """Bytes in the largest unit that fits: `812 B`, `1.4 GiB`."""
    for unit, one in reversed(_SIZES.items()):
        if abs(count) >= one:
            return f"{count / one:.1f} {unit}"
    return f"{count} B"


def number(count: int) -> str:
    """With a blank between thousands: `1 234 567`."""
    return f"{count:_}".replace("_", " ")


def counted(count: int, one: str) -> str:
    """`1 segment`, `2 segments`."""
    return f"{number(count)} {one}{'' if count == 1 else 's'}"


def _with_plus(text: str) -> str:
    """In a query string a plus sign that is not escaped arrives as a blank."""
    day, mark, time = text.partition("T")
    return f"{day}T{time.replace(' ', '+')}" if mark else text


def _bounded(ms: int) -> int:
    if not -LONG_MAX <= ms <= LONG_MAX:
        raise ValueError(f"{ms} is out of bounds: a time has 64 bits")
    return ms
