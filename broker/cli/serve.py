"""`horolog serve`: the options of the broker, which are settings by other names."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from broker.daemon.serve import LoopFactory


@click.command("serve")
@click.option("--config", "file", metavar="FILE", help="Settings file, YAML or server.properties.")
@click.option("--data-dir", metavar="DIR", help="Data directory (default ./data).")
@click.option(
    "--listen", metavar="HOST:PORT", help="Listener for clients; port 0 takes any free one."
)
@click.option(
    "--http", metavar="HOST:PORT", help="Listener for health, metrics and the HTTP API; '' is none."
)
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Setting by its key; may be repeated, and overrides the other options.",
)
@click.option(
    "--log-level",
    type=click.Choice(("debug", "info", "warning", "error")),
    default="info",
    show_default=True,
)
@click.option(
    "--log-format", type=click.Choice(("logfmt", "json")), default="logfmt", show_default=True
)
@click.option(
    "--test-clock",
    metavar="[START]",
    is_flag=False,
    flag_value="now",
    help="For tests: use a clock that POST /api/clock/... stops, moves and speeds up. START is its "
    "first time (ISO-8601 or milliseconds; default now).",
)
@click.pass_obj
def command(
    loop_factory: "LoopFactory | None",
    *,
    file: str | None,
    data_dir: str | None,
    listen: str | None,
    http: str | None,
    settings: Sequence[str],
    log_level: str,
    log_format: str,
    test_clock: str | None,
) -> int:
    """Run the broker until SIGTERM or Ctrl-C.

    One line on standard output says when it is ready and where; its log goes to standard error.
    """
    from broker.daemon.serve import serve

    return serve(
        flags=flags_of(data_dir=data_dir, listen=listen, http=http, settings=settings),
        file=file,
        log_level=log_level,
        log_as_json=log_format == "json",
        loop_factory=loop_factory,
        test_clock=test_clock,
    )


def flags_of(
    *, data_dir: str | None, listen: str | None, http: str | None, settings: Sequence[str]
) -> list[str]:
    """The options as settings; those of `--set` come last, so that they win."""
    flags = []
    if data_dir is not None:
        flags.append(f"log.dirs={data_dir}")
    if listen is not None:
        flags.append(f"listeners=PLAINTEXT://{listen}")
    if http is not None:
        flags.append(f"horolog.http.listener={http}")
    return [*flags, *settings]
