"""`horolog config`: what every setting is and why (`explain`), whether a file is right (`check`),
what clients have set and its undoing (`unset`), and the generated documentation (`docs`).

Prints to standard output; mistakes go to standard error with exit status 1. Reads settings as a
starting broker would, and starts nothing.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from config.describe import Described
    from config.sources import Loaded
    from config.store import ConfigStore


@click.group("config", no_args_is_help=False)
def command() -> None:
    """Explain and check settings."""


@command.command("explain")
@click.argument("key", required=False)
@click.option("--config", "file", metavar="FILE", help="Settings file, YAML or server.properties.")
@click.option(
    "--set",
    "flags",
    metavar="KEY=VALUE",
    multiple=True,
    help="Setting by its key, as in serve; may be repeated.",
)
def explain(key: str | None, file: str | None, flags: Sequence[str]) -> int:
    """Show every setting, its value and its source; or KEY alone, in full.

    KEY may be a topic's name of the setting (retention.ms) or the broker's (log.retention.ms).
    """
    from config.errors import ConfigError
    from config.sources import load

    try:
        loaded = load(flags=flags, file=file)
        store = _store(loaded)
        if key is None:
            _print_all(store, loaded)
        else:
            _print_one(_described(store, key))
    except ConfigError as error:
        return _refused(error)
    return 0


@command.command("check")
@click.argument("file")
def check(file: str) -> int:
    """Read FILE as the broker would, and name every mistake in it."""
    from config.errors import ConfigError
    from config.sources import load

    try:
        loaded = load(file=file, environment={})
        _store(loaded)
    except ConfigError as error:
        return _refused(error)
    for each in loaded.ignored:
        print(each)
    count = sum(len(layer.settings) for layer in loaded.layers)
    print(f"{file}: {count} settings, all right")
    return 0


@command.command("docs")
@click.option("--write", is_flag=True, help="Write the files that are out of date.")
@click.option("--check", "fail", is_flag=True, help="Exit with 1 when a file is out of date.")
def docs(*, write: bool, fail: bool) -> int:
    """Print the tables and the example file that are made from the code."""
    if not (write or fail):
        print(_topic_and_broker_tables(), end="")
        return 0
    stale = _stale_files(Path(__file__).resolve().parents[2])
    for path, text in stale.items():
        if write:
            path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {'written' if write else 'out of date'}")
    return 1 if stale and fail else 0


@command.command("unset")
@click.argument("key", required=False)
@click.option(
    "--data-dir", metavar="DIR", help="Data directory of the stopped broker (default: as serve)."
)
@click.option(
    "--config", "file", metavar="FILE", help="Settings file that names the data directory."
)
@click.option("--topic", help="Take back a setting of this topic, not of the broker.")
def unset(key: str | None, data_dir: str | None, file: str | None, topic: str | None) -> int:
    """Take back KEY, which a client has set at run time, while the broker is stopped.

    For a broker that refuses every connection or does not start. Without KEY, lists what is stored.
    """
    from broker.cli.security.account import leave_trace
    from broker.topics.stored_settings import stored_lines, unset_key
    from config.errors import ConfigError
    from config.sources import load
    from storage.errors import StorageError
    from storage.posix import real_env

    flags = [] if data_dir is None else [f"log.dirs={data_dir}"]
    try:
        directory = _store(load(flags=flags, file=file)).broker_config.log_dir
        env = real_env()
        if key is None:
            print(stored_lines(env.fs, directory), end="")
        else:
            taken_back = unset_key(env.fs, directory, key, topic)
            resource = "broker" if topic is None else f"topic {topic}"
            command, detail = "horolog config unset", taken_back.strip()
            leave_trace(env, directory, command, "alter settings", resource=resource, detail=detail)
            print(taken_back, end="")
    except (ConfigError, StorageError) as error:
        return _refused(error)
    return 0


def _topic_and_broker_tables() -> str:
    from config.docs import broker_table, topic_table

    return f"{topic_table()}\n{broker_table()}"


def _stale_files(root: Path) -> dict[Path, str]:
    """The generated files that differ from the code, and what they should hold."""
    from broker.cli.reference import stale_pages
    from config.docs import example_yaml

    stale = stale_pages(root)
    example, text = root / "config" / "server.yaml", example_yaml()
    if not example.exists() or example.read_text(encoding="utf-8") != text:
        stale[example] = text
    return stale


def _described(store: "ConfigStore", name: str) -> "Described":
    """One setting; `retention.ms` may be asked for as well as `log.retention.ms`. ConfigError."""
    from config.names import is_of_topics_alone, named_anywhere

    key = named_anywhere(name).keys[0]
    if is_of_topics_alone(name):
        return store.describe_topic("", [name])[0]
    (entry,) = store.describe_broker(names=[key.broker_name])
    return entry


def _store(loaded: "Loaded") -> "ConfigStore":
    from config.store import ConfigStore

    return ConfigStore(loaded.layers)


def _print_all(store: "ConfigStore", loaded: "Loaded") -> None:
    for entry in store.describe_broker():
        print(f"{entry.name} = {entry.value}    [{_origin(entry)}]")
    for each in loaded.ignored:
        print(each)


def _print_one(entry: "Described") -> None:
    from config.names import is_of_topics_alone, named_anywhere
    from config.sources import variable_of_key

    named = named_anywhere(entry.name)
    key = named.keys[0]
    lines = {
        "value": entry.value,
        "from": _origin(entry),
        "default": key.default_text,
        "allowed": named.spelling.type.bounds(),
        "changes": "at run time" if key.dynamic else "at start only",
        "variable": None if is_of_topics_alone(entry.name) else variable_of_key(entry.name),
        "on a topic": key.name if key.on_topic else None,
        "overruled": ", ".join(f"{each.name}={each.value}" for each in entry.synonyms[1:-1]),
    }
    print(entry.name)
    print(f"  {key.doc}")
    for label, text in lines.items():
        if text:
            print(f"  {label:<11}{text}")


def _origin(entry: "Described") -> str:
    return "default" if entry.is_default else entry.where


def _refused(error: Exception) -> int:
    print(error, file=sys.stderr)
    return 1
