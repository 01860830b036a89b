"""The generated pages of docs/reference, made of the declarations that the code itself reads."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from broker.metrics.catalogue import CATALOGUE, KAFKA_CATALOGUE
from broker.metrics.declare import Catalogue, Durations, Metric, Spread

if TYPE_CHECKING:
    from broker.http.port.route import HttpRoute

WIDTH = 100


def marked_tables() -> dict[str, dict[str, str]]:
    """Tables between the marks of a page: by path from the root, and by mark."""
    from broker.explain.pages import codes_table
    from config.docs import (
        broker_table,
        client_metrics_table,
        group_table,
        kept_table,
        topic_table,
    )
    from config.wire_rules import fixed_table

    return {
        "docs/reference/apis.md": {"served apis": api_table()},
        "docs/reference/settings.md": {
            "settings of a topic": topic_table(),
            "settings of the broker": broker_table(),
            "settings of a group": group_table(),
            "settings of a subscription": client_metrics_table(),
            "settings without effect": kept_table(),
        },
        "docs/reference/events.md": {"codes": codes_table()},
        "docs/operations.md": {"not by clients": fixed_table()},
        "docs/reference/metrics.md": {
            "metrics": metrics_table(CATALOGUE),
            "metrics in Kafka's names": metrics_table(KAFKA_CATALOGUE),
        },
        "docs/reference/cli.md": {"commands": commands()},
        "docs/reference/http-api.md": {"paths": paths_table()},
    }


def stale_pages(root: Path) -> dict[Path, str]:
    """Pages that differ from the code, and what they should hold."""
    from config.docs import with_section

    stale = {}
    for name, tables in marked_tables().items():
        path = root / name
        before = text = path.read_text(encoding="utf-8")
        for mark, table in tables.items():
            assert f"<!-- {mark} -->\n" in text, f"{name} has no place for {mark}"
            text = with_section(text, mark, table)
        if text != before:
            stale[path] = text
    return stale


def api_table() -> str:
    """Markdown: every API that ApiVersions lists, with its versions."""
    from broker.daemon.routes import served

    head = "| API | key | versions |\n|---|---|---|\n"
    return head + "".join(
        f"| {api.name} | {api.key} | {api.min_version}-{api.max_version} |\n" for api, _ in served()
    )


def metrics_table(catalogue: Catalogue) -> str:
    """Markdown: every metric with its type and labels."""
    head = "| metric | type | labels | what it tells |\n|---|---|---|---|\n"
    rows: list[Metric[Any] | Durations[Any] | Spread[Any]] = [
        *catalogue.metrics, *catalogue.durations, *catalogue.spreads,
    ]  # fmt: skip
    return head + "".join(map(_metric_row, rows))


def _metric_row(each: Metric[Any] | Durations[Any] | Spread[Any]) -> str:
    kind = each.kind if isinstance(each, Metric) else "histogram"
    name = f"{each.name}_total" if kind == "counter" else each.name
    labels = ", ".join(f"`{label}`" for label in each.labels)
    return f"| `{name}` | {kind} | {labels} | {each.help} |\n"


def paths_table() -> str:
    """Markdown: every resource of the HTTP API with its parameters."""
    from broker.http.routes import ROUTES

    head = "| request | parameters | what it answers | right, role |\n|---|---|---|---|\n"
    return head + "".join(map(_path_row, ROUTES))


def _path_row(route: "HttpRoute[Any]") -> str:
    parameters = ", ".join(f"`{each.name}`" for each in route.parameters)
    return f"| `{route.method} {route.path}` | {parameters} | {route.summary} | {route.needs} |\n"


def commands() -> str:
    """Markdown: the help of every command."""
    from broker.cli.main import horolog

    return "\n".join(_help_of(*each) for each in _walk("horolog", horolog, None))


def _walk(
    name: str, command: click.Command, parent: click.Context | None
) -> Iterator[tuple[str, str]]:
    """The full name and the help of a command, and of those below it."""
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    context = click.Context(command, info_name=name, parent=parent, **settings)
    yield context.command_path, command.get_help(context)
    for below in _below(command, context):
        yield from _walk(*below, context)


def _below(command: click.Command, context: click.Context) -> Iterable[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        if found is not None and not found.hidden:
            yield name, found


def _help_of(name: str, text: str) -> str:
    return f"## {name}\n\n```text\n{text}\n```\n"
