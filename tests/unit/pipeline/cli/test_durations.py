"""Durations as options of the pipeline's commands."""

import click
import pytest

from pipeline.cli.durations import Duration


@pytest.mark.parametrize(
    ("text", "ms"), [("500ms", 500), ("30s", 30_000), ("15m", 900_000), ("5 min", 300_000)]
)
def test_a_duration_with_its_unit_is_understood(text: str, ms: int) -> None:
    assert Duration().convert(text, None, None) == ms


@pytest.mark.parametrize("text", ["", "30", "-1h", "1w", "1.5h", "9" * 30 + "d"])
def test_no_unit_a_negative_one_and_all_else_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no time: 500ms, 30s, 15m, 2h, 7d"):
        Duration().convert(text, None, None)
