"""Durations on the command line: `500ms`, `30s`, `15m`, `2h`, `7d`. In milliseconds."""

import click

from config.quantities import parse_duration


class Duration(click.ParamType):  # type: ignore[type-arg]  # older clicks have none
    """A duration with its unit, as milliseconds; a negative one is refused."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Milliseconds of the text; click's usage error for anything else."""
        if isinstance(value, int):
            return value
        text = str(value).strip()
        try:
            milliseconds = parse_duration(text)
        except ValueError:
            milliseconds = -1
        if milliseconds < 0 or text[-1:].isdigit():
            self.fail(f"{value!r} is no time: 500ms, 30s, 15m, 2h, 7d", param, ctx)
        return milliseconds
