"""Stretches of time on the command line: `500ms`, `30s`, `15m`, `2h`, `7d`. In milliseconds."""

import re

import click

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TEXT = re.compile(r"(\d{1,12})(ms|[smhd])")


class Duration(click.ParamType):  # type: ignore[type-arg]  # older clicks have none
    """A number with its unit, as milliseconds."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """The milliseconds; a mistake of the user when the text is something else."""
        if isinstance(value, int):
            return value
        found = _TEXT.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is no time: 500ms, 30s, 15m, 2h, 7d", param, ctx)
        return int(found[1]) * _UNITS[found[2]]
