"""The options that jobs over records have in common: where the records are, and who reads them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pipeline.engine.engine import NATIVE, SPARK
from pipeline.errors import BadOption

if TYPE_CHECKING:
    from pipeline.sources.chunks import Chunk
    from pipeline.sources.options import ReadOptions
    from pipeline.sources.partition_view import PartitionView


Option = Callable[[Callable[..., int]], Callable[..., int]]


class Part(NamedTuple):
    """All of one partition, for one worker: chunks in the order of the log."""

    view: "PartitionView"
    chunks: "tuple[Chunk, ...]"


def reading(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a command `log_dirs`, `bootstrap`, `command_config`, `tier`, `allow_http`, `topics`,
    `engine`, `master` and `as_json`.
    """
    for option in reversed((
        click.option("--log-dirs", metavar="DIR[,DIR]", help="Data directories to read."),
        click.option("--bootstrap", metavar="HOST:PORT", help="Broker to read from."),
        client_settings(),
        tier_settings,
        click.option(
            "--topic", "topics", multiple=True, required=True, help="Topic to read; repeatable."
        ),
        click.option(
            "--engine", type=click.Choice([NATIVE, SPARK]), default=NATIVE, show_default=True
        ),
        click.option("--master", metavar="URL", help="Spark master (default: this machine)."),
        click.option("--json", "as_json", is_flag=True, help="Print the exact answer as JSON."),
    )):  # fmt: skip
        command = option(command)
    return command


def client_settings(name: str = "--command-config", broker: str = "--bootstrap") -> Option:
    """The option that names the settings of security for a broker."""
    return click.option(
        name,
        metavar="FILE",
        help=f"Settings of a client for {broker}, as Kafka's tools take them: security.protocol, "
        "sasl.*, ssl.*.",
    )


def tier_settings(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a command `tier` and `allow_http`."""
    for option in reversed((
        click.option(
            "--tier", metavar="URL",
            help="Store of the tier: s3://bucket/prefix, as in horolog.tier.url. Read alone, or "
            "for what --log-dirs or --bootstrap do not have on a disk.",
        ),
        click.option(
            "--allow-http", is_flag=True, help="As horolog.tier.allow.http: without TLS, too."
        ),
    )):  # fmt: skip
        command = option(command)
    return command


def tier_options(url: str | None, *, allow_http: bool) -> dict[str, str]:
    """The place of a tier as options of the source."""
    if url is None:
        return {}
    return {"horolog.tier.url": url, "horolog.tier.allow.http": str(allow_http).lower()}


def refuse_nowhere(*given: str | None) -> None:
    """BadOption unless one of them says where the records are."""
    if not any(given):
        raise BadOption("--log-dirs DIR, --bootstrap HOST:PORT or --tier URL says where to read")


def security_options(file: str | None) -> dict[str, str]:
    """The settings in a file as options of the source and the sink. BadOption."""
    if file is None:
        return {}
    from broker.access.errors import AccessError
    from broker.access.files import read_settings
    from broker.access.settings import client_security

    try:
        settings = client_security(read_settings(file)).settings
    except AccessError as error:
        raise BadOption(f"{file}: {error}") from None
    return {f"kafka.{key}": value for key, value in settings.items()}


def read_options(
    log_dirs: str | None, bootstrap: str | None, topics: "tuple[str, ...] | list[str]",
    command_config: str | None = None, **more: str,
) -> "ReadOptions":  # fmt: skip
    """Parses the options of a job into options of the source. BadOption."""
    from pipeline.sources.options import parse

    refuse_nowhere(log_dirs, bootstrap, more.get("horolog.tier.url"))
    given: dict[str, Any] = {
        "subscribe": ",".join(topics), "log_dirs": log_dirs, "bootstrap": bootstrap,
        **security_options(command_config), **more,
    }  # fmt: skip
    return parse({name: value for name, value in given.items() if value is not None})


def partition_parts(options: "ReadOptions") -> list[Part]:
    """Each partition whole, as it stands now. NothingThere, DataLost, BrokerRefused, DiskError."""
    from pipeline.sources.bounds import EVERYTHING, Range
    from pipeline.sources.planning import chunks_of, views_of

    return [
        Part(
            view,
            tuple(
                chunks_of(options, view, Range(view.start_offset, view.end_offset - 1), EVERYTHING)
            ),
        )
        for view in views_of(options)
    ]
