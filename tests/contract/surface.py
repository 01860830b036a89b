"""The public surface in one list: what users, scripts, dashboards and clients may rely on.

One line each: commands with their options, HTTP paths, metrics with their labels, event codes,
settings, wire APIs. `surface.txt` is the list of the last commit. `python -m tests.contract.surface
--write` brings it up to date.
"""

import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import click
from prometheus_client import CollectorRegistry
from prometheus_client.process_collector import ProcessCollector

from broker.cli.main import horolog
from broker.daemon.routes import served
from broker.explain.pages import PAGES
from broker.http.port.open_pages import INDEX
from broker.http.port.route import HttpRoute
from broker.http.routes import ROUTES
from broker.http.timeline.time_page import PATHS
from broker.metrics.scrape import CATALOGUES
from config.foreign.kept import KEPT_OF_THE_BROKER, KEPT_OF_TOPICS
from config.key import ConfigKey, Spelling
from config.names import BROKER_KEYS, TOPIC_KEYS
from config.sources import variable_of_key

LIST = Path(__file__).with_name("surface.txt")
REMEDY = """\
The public surface is no longer what tests/contract/surface.txt lists. Users rely on it: give what
was renamed an alias, or say the change in docs/changelog.md. Then bring the list up to date:
    .venv/bin/python -m tests.contract.surface --write"""


def surface() -> list[str]:
    """Every line, in a fixed order."""
    parts = (commands(), paths(), metrics(), event_codes(), settings(), wire_apis())
    return list(chain.from_iterable(map(sorted, parts)))


def commands() -> Iterator[str]:
    """`cli horolog time lag --topic TEXT`: one line a command, one an option or argument."""
    yield from _command(horolog, "horolog", None)


def _command(command: click.Command, path: str, parent: click.Context | None) -> Iterator[str]:
    name = path.rsplit(maxsplit=1)[-1]
    context = click.Context(command, info_name=name, parent=parent, **command.context_settings)
    yield f"cli {path}"
    for parameter in command.get_params(context):
        yield f"cli {path} {_parameter(parameter)}"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None, name
            yield from _command(inner, f"{path} {name}", context)


def _parameter(parameter: click.Parameter) -> str:
    spelled = "|".join(sorted([*parameter.opts, *parameter.secondary_opts]))
    if isinstance(parameter, click.Argument):
        spelled = f"<{spelled}>"
    elif not getattr(parameter, "is_flag", False):
        spelled += f" {_kind(parameter.type)}"
    traits = {"required": parameter.required, "repeated": getattr(parameter, "multiple", False)}
    traits["any number"] = parameter.nargs == -1
    return _with_traits(spelled, traits)


def _kind(kind: click.ParamType) -> str:
    if isinstance(kind, click.Choice):
        return "{" + ",".join(map(str, kind.choices)) + "}"
    return kind.name


def paths() -> Iterator[str]:
    """`http GET /api/topics`, with one line a parameter; probes, scrapes and pages, too."""
    open_paths = {*INDEX.decode().split(), *PATHS} - {route.path for route in ROUTES}
    yield from (f"http GET {path}" for path in open_paths)
    for route in ROUTES:
        yield f"http {route.method} {route.path}"
        yield from (f"http {route.method} {route.path} {asked}" for asked in _asked(route))


def _asked(route: HttpRoute[Any]) -> Iterator[str]:
    for each in route.parameters:
        default = "" if each.default is None else f" default={each.default}"
        yield _with_traits(f"?{each.name}{default}", {"required": each.required})
    if route.takes_settings:
        yield "?SETTING of a topic"


def metrics() -> Iterator[str]:
    """`metric /metrics counter horolog_requests_total{api}`."""
    process = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=process)
    of_process = [(family.type, family.name, ()) for family in process.collect()]
    for path, catalogue in CATALOGUES.items():
        families = [(each.kind, each.name, each.labels) for each in catalogue.metrics]
        spreads = (*catalogue.durations, *catalogue.spreads)
        families += [("histogram", each.name, each.labels) for each in spreads]
        for kind, name, labels in (*families, *of_process):
            shown = f"{name}_total" if kind == "counter" else name
            yield f"metric /{path} {kind} {shown}{{{','.join(labels)}}}"


def event_codes() -> Iterator[str]:
    """`event disk_low`, and `event NEW formerly OLD`: all that `horolog explain` knows."""
    for code, page in PAGES.items():
        yield f"event {code}" + (f" formerly {page.formerly}" if page.formerly else "")


def settings() -> Iterator[str]:
    """Settings with their defaults, bounds and every name under which they can be set."""
    for scope, keys in (
        ("broker", BROKER_KEYS),
        ("topic", TOPIC_KEYS),
        ("kept", (*KEPT_OF_THE_BROKER, *KEPT_OF_TOPICS)),
    ):
        for key in keys:
            yield f"setting {scope} {_setting(key)}"
            if key.on_broker:
                yield f"setting {scope} {key.name} environment {variable_of_key(key.broker_name)}"
            for where, spellings in (("broker", key.on_broker), ("topic", key.on_topic)):
                names = _spelled(spellings)
                if names:
                    yield f"setting {scope} {key.name} on {where}: {names}"


def _setting(key: ConfigKey) -> str:
    kind = f"{key.kafka_type.name} default={key.default_text or 'empty'} {key.type.bounds()}"
    traits = {"dynamic": key.dynamic, "sensitive": key.sensitive}
    return _with_traits(f"{key.name} {' '.join(kind.split())} {key.importance}", traits)


def _spelled(spellings: Iterable[Spelling]) -> str:
    return ", ".join(each.name + (" (hidden)" if each.hidden else "") for each in spellings)


def wire_apis() -> Iterator[str]:
    """`api 0 Produce 3-13`."""
    for api, _ in served():
        yield f"api {api.key} {api.name} {api.min_version}-{api.max_version}"


def _with_traits(text: str, traits: dict[str, bool]) -> str:
    return " ".join([text, *(f"({trait})" for trait, holds in traits.items() if holds)])


def main() -> int:
    """Write the list with --write; without it, say whether it is current."""
    lines = surface()
    wanted = "".join(f"{line}\n" for line in lines)
    if sys.argv[1:] == ["--write"]:
        LIST.write_text(wanted, encoding="utf-8")
        return 0
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(wanted)
        return 0
    current = LIST.read_text(encoding="utf-8") == wanted
    if not current:
        print(REMEDY, file=sys.stderr)
    return 0 if current else 1


if __name__ == "__main__":
    sys.exit(main())
