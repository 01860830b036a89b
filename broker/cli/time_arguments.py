"""Times on the command line: as arguments that may begin with a minus, and in answers, for people.

An answer carries a time as `{"ms": ..., "iso": ...}`, `iso` being None outside the calendar.
"""

import re
from collections.abc import Mapping
from typing import Any

import click

from config.quantities import NOTHING, second

_RELATIVE = re.compile(r"-\d")


class TimesCommand(click.Command):
    """A command whose arguments may be `-2h`, which no option looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """A blank in front keeps such an argument from being read as options; brokers ignore it."""
        return super().parse_args(
            ctx, [f" {each}" if _RELATIVE.match(each) else each for each in args]
        )


def when(instant: Mapping[str, Any] | None) -> str:
    """To the second, in UTC: `2026-01-31T12:00:00Z`; milliseconds beyond the calendar."""
    return second(None if instant is None else instant["ms"])


def exactly(instant: Mapping[str, Any] | None) -> str:
    """To the millisecond."""
    if instant is None:
        return NOTHING
    return str(instant["iso"] or f"{instant['ms']} ms")


def minute(instant: Mapping[str, Any] | None) -> str:
    """To the minute, for narrow columns: `2026-01-31 12:00`."""
    if instant is None:
        return NOTHING
    iso = instant["iso"]
    return f"{instant['ms']} ms" if iso is None else iso[:16].replace("T", " ")
