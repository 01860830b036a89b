"""`horolog retention`: what would go, before it goes."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from broker.cli.admin_client import AdminPort, Answer, live, print_json
from broker.cli.time_arguments import minute, when

COLUMNS = ("partition", ">segments", ">size", ">offsets", "oldest", "newest", "log then starts at")


@click.group("retention", no_args_is_help=False)
def command() -> None:
    """Preview what retention would remove."""


@command.command("preview", short_help="Show what would be removed with these settings.")
@click.argument("topic")
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Topic setting to assume; may be repeated. Values may have units: 1h, 7d, 5GiB.",
)
@click.option("--partition", metavar="N", type=click.IntRange(0), help="Show this partition only.")
@live
def preview(
    port: AdminPort, topic: str, *, settings: Sequence[str], partition: int | None, as_json: bool
) -> int:
    """Show what the next round of retention would remove from TOPIC with these settings.

    Nothing is set and nothing is removed. Without --set the present settings apply.

    \b
    horolog retention preview events --set retention.ms=1h
    horolog retention preview events --set horolog.retention.clock=arrival \\
        --set retention.bytes=5GiB
    """
    answer = port.of_topic(topic, "retention/preview", partition=partition, **_pairs(settings))
    if as_json:
        return print_json(answer)
    _show(answer)
    return 0


def _pairs(settings: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in settings:
        key, equals, value = each.partition("=")
        if not equals or not key or key in found:
            raise click.UsageError(f"--set {each!r}: write KEY=VALUE, each key once")
        if key == "partition":
            raise click.UsageError("--set partition: write --partition N")
        found[key] = value
    return found


def _show(answer: Answer) -> None:
    from broker.cli.tables import TablePage
    from config.quantities import counted

    page = TablePage()
    asked = ", ".join(f"{key}={value}" for key, value in answer["set"].items())
    condition = f"With {asked}" if asked else "As things are"
    page.line(f"{condition}, the next round of retention takes {_amount(answer['goes'])}.")
    if asked:
        page.line(f"Without it: {_amount(answer['goes_anyway'])}.")
    hold = answer["hold"]
    if hold is not None:
        page.line(f"Not before {when(hold['until'])}, though: {hold['because']}.")
    leaving = [each for each in answer["partitions"] if each["segments"] or each["offsets"]]
    if leaving:
        page.table(COLUMNS, map(_row, leaving))
    for reason, count in _reasons(leaving).items():
        page.line(f"{counted(count, 'segment')}: {reason}")


def _amount(total: Mapping[str, Any]) -> str:
    from config.quantities import counted, size

    if not total["segments"] and not total["offsets"]:
        return "nothing"
    times = f" ({when(total['oldest'])} to {when(total['newest'])})" if total["oldest"] else ""
    return (
        f"{counted(total['segments'], 'segment')}, {size(total['size_bytes'])}, "
        f"{counted(total['offsets'], 'offset')}{times}"
    )


def _row(state: Mapping[str, Any]) -> Sequence[str]:
    from config.quantities import number, size

    return (
        str(state["partition"]),
        number(state["segments"]),
        size(state["size_bytes"]),
        number(state["offsets"]),
        minute(state["oldest"]),
        minute(state["newest"]),
        str(state["log_start_offset"]),
    )


def _reasons(leaving: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for state in leaving:
        for reason, count in state["because"].items():
            found[reason] = found.get(reason, 0) + count
    return found
