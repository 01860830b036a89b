"""`horolog config`: what every setting is and why (`explain`), whether a file is right (`check`),
and the generated documentation (`docs`).

Prints to standard output; mistakes go to standard error with exit status 1. Reads settings as a
starting broker would, and starts nothing.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from config.describe import Described
    from config.sources import Loaded
    from config.store import ConfigStore


def add_config_commands(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `config` and its commands; each sets `run`, a function of the parsed arguments.

    `run(arguments)` returns the exit status: 0, or 1 when a setting is wrong.
    """
    commands = subparsers.add_parser("config", help="explain and check settings").add_subparsers(
        required=True, metavar="COMMAND"
    )
    explain = commands.add_parser("explain", help="every setting, its value and where it is from")
    explain.add_argument("key", nargs="?", help="this setting alone")
    explain.add_argument("--config", metavar="FILE", help="YAML or server.properties")
    explain.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], dest="flags")
    explain.set_defaults(run=run_explain)
    check = commands.add_parser("check", help="whether a file of settings is right")
    check.add_argument("file", metavar="FILE")
    check.set_defaults(run=run_check)
    docs = commands.add_parser("docs", help="the tables and the example file, from the code")
    docs.add_argument("--write", action="store_true", help="bring the files up to date")
    docs.add_argument("--check", action="store_true", help="exit 1 when a file is out of date")
    docs.set_defaults(run=run_docs)


def run_explain(arguments: argparse.Namespace) -> int:
    """Prints one setting in full, or all of them; returns the exit status."""
    from config.errors import ConfigError
    from config.names import broker_name
    from config.sources import load

    try:
        loaded = load(flags=arguments.flags, file=arguments.config)
        store = _store(loaded)
        if arguments.key is None:
            _print_all(store, loaded)
        else:
            name = _name_on_broker(arguments.key)
            key = broker_name(name).keys[0]
            (entry,) = store.describe_broker(names=[key.broker_name])
            _print_one(entry)
    except ConfigError as error:
        return _refused(error)
    return 0


def run_check(arguments: argparse.Namespace) -> int:
    """Reads one file as the broker would; returns 1 when it names mistakes."""
    from config.errors import ConfigError
    from config.sources import load

    try:
        loaded = load(file=arguments.file, environment={})
        _store(loaded)
    except ConfigError as error:
        return _refused(error)
    for each in loaded.ignored:
        print(each)
    count = sum(len(layer.settings) for layer in loaded.layers)
    print(f"{arguments.file}: {count} settings, all right")
    return 0


def run_docs(arguments: argparse.Namespace) -> int:
    """Prints the tables, or writes or checks the files that hold them."""

    if not (arguments.write or arguments.check):
        print("\n".join(_tables().values()), end="")
        return 0
    stale = _stale_files(Path(__file__).resolve().parents[1])
    for path, text in stale.items():
        if arguments.write:
            path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {'written' if arguments.write else 'out of date'}")
    return 1 if stale and arguments.check else 0


def _tables() -> dict[str, str]:
    """What stands between the README's marks, by mark."""
    from broker.api_table import api_table
    from config.docs import broker_table, topic_table

    return {
        "served apis": api_table(),
        "settings of a topic": topic_table(),
        "settings of the broker": broker_table(),
    }


def _stale_files(root: Path) -> dict[Path, str]:
    """The generated files that differ from the code, and what they should hold."""
    from config.docs import example_yaml, with_section

    readme = root / "README.md"
    text = readme.read_text(encoding="utf-8")
    for mark, table in _tables().items():
        text = with_section(text, mark, table)
    wanted = {root / "config" / "server.yaml": example_yaml(), readme: text}
    return {
        path: text
        for path, text in wanted.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }


def _name_on_broker(name: str) -> str:
    """`retention.ms` may be asked for as well as `log.retention.ms`."""
    from config.names import TOPIC_KEYS

    return next((key.broker_name for key in TOPIC_KEYS if key.name == name), name)


def _store(loaded: "Loaded") -> "ConfigStore":
    from config.store import ConfigStore

    return ConfigStore(loaded.layers)


def _print_all(store: "ConfigStore", loaded: "Loaded") -> None:
    for entry in store.describe_broker():
        print(f"{entry.name} = {entry.value}    [{_origin(entry)}]")
    for each in loaded.ignored:
        print(each)


def _print_one(entry: "Described") -> None:
    from config.names import broker_name
    from config.sources import variable_of_key

    named = broker_name(entry.name)
    key = named.keys[0]
    lines = {
        "value": entry.value,
        "from": _origin(entry),
        "default": key.default_text,
        "allowed": named.spelling.type.bounds(),
        "changes": "at run time" if key.dynamic else "at start only",
        "variable": variable_of_key(entry.name),
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
