"""`horolog spark sql`: topics as views of Spark's, to be asked in SQL."""

import json
import sys
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.options import (
    client_settings,
    refuse_nowhere,
    security_options,
    tier_options,
    tier_settings,
)
from pipeline.cli.terminal import FINE, named_errors
from pipeline.errors import BadOption

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_ROWS = 1000


@click.command("sql", short_help="Query topics in SQL.")
@click.option("--log-dirs", metavar="DIR[,DIR]", help="Data directories to read, comma-separated.")
@click.option("--bootstrap", metavar="HOST:PORT", help="Broker to read from.")
@client_settings()
@tier_settings
@click.option(
    "--topic", "topics", multiple=True, required=True, help="Topic to query; may be repeated."
)
@click.option(
    "--execute",
    "-e",
    "statements",
    multiple=True,
    help="Statement to run in place of standard input.",
)
@click.option("--master", metavar="URL", help="Spark master (default: this machine).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a row.")
def command(
    *, log_dirs: str | None, bootstrap: str | None, command_config: str | None, tier: str | None,
    allow_http: bool, topics: tuple[str, ...], statements: tuple[str, ...], master: str | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Query topics in SQL: each is a view of its name, with all columns, both times included.

    Without --execute, statements are read from standard input, each ends with a semicolon. At most
    1000 rows of an answer are shown. In names of views each character of the topic's name other
    than letters, digits and _ becomes _.
    """
    given = {"log_dirs": log_dirs, "bootstrap": bootstrap}
    options = {name: value for name, value in given.items() if value is not None}
    options |= tier_options(tier, allow_http=allow_http)
    refuse_nowhere(*options.values())
    with named_errors():
        options |= security_options(command_config)
        session = _session(options, topics, master)
    for statement in statements or _typed():
        _run(session, statement, as_json=as_json)
    return FINE


def view_name(topic: str) -> str:
    """The name of a topic's view."""
    name = "".join(each if each.isalnum() and each.isascii() else "_" for each in topic)
    return name if not name[:1].isdigit() else f"_{name}"


def _refuse_one_name(topics: tuple[str, ...]) -> None:
    """BadOption for topics that would be one view: Spark does not tell capitals apart, either."""
    known: dict[str, str] = {}
    for topic in topics:
        other = known.setdefault(view_name(topic).lower(), topic)
        if other != topic:
            raise BadOption(
                f"{other} and {topic} would both be the view {view_name(topic)}: query them one "
                "after the other"
            )


def register_views(
    session: "SparkSession", options: dict[str, str], topics: tuple[str, ...]
) -> None:
    """Make a view of each topic."""
    for topic in topics:
        frame = (
            session.read.format("horolog")
            .options(**options, subscribe=topic, includeHeaders="true", metadataColumns="true")
            .load()
        )
        frame.createOrReplaceTempView(view_name(topic))


def _session(
    options: dict[str, str], topics: tuple[str, ...], master: str | None
) -> "SparkSession":
    from pipeline.sources.options import parse
    from pipeline.sources.planning import views_of
    from pipeline.spark.errors import spark_errors
    from pipeline.spark.session import open_session

    _refuse_one_name(topics)  # mistakes before Java starts
    views_of(parse({**options, "subscribe": ",".join(topics)}))
    session = open_session("horolog sql", master=master, is_short=True)
    with spark_errors():
        register_views(session, options, topics)
    return session


def _typed() -> Any:
    """Statements from standard input."""
    waiting = ""
    is_person = sys.stdin.isatty()
    while True:
        if is_person:
            click.echo("sql> " if not waiting else "...> ", nl=False)
        line = sys.stdin.readline()
        if not line:
            break
        waiting += line
        while ";" in waiting:
            statement, _, waiting = waiting.partition(";")
            yield statement
    if waiting.strip():
        yield waiting


def _as_json(value: object) -> str:
    """Turns types without a JSON form into text: bytes as UTF-8, times as ISO 8601."""
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "backslashreplace")
    return value.isoformat() if isinstance(value, datetime | date) else str(value)


def _run(session: "SparkSession", statement: str, *, as_json: bool) -> None:
    from pyspark.errors import PySparkException

    from pipeline.spark.errors import ExecutorLacks, named

    if not statement.strip():
        return
    try:
        answer = session.sql(statement)
        if as_json:
            for row in answer.take(MOST_ROWS):
                click.echo(json.dumps(row.asDict(recursive=True), default=_as_json))
        else:
            answer.show(MOST_ROWS, truncate=60)
    except PySparkException as error:
        if isinstance(known := named(str(error)), ExecutorLacks):
            raise known from error
        message = (error.getMessage() or str(error)).strip().splitlines()[0]
        if not sys.stdin.isatty():
            raise BadOption(message) from error
        click.echo(message, err=True)
