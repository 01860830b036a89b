"""The command line `horolog`: its commands, each loaded on use, and their exit statuses.

A user's mistake ends in one line on standard error and an exit status that names its kind
(`runtime/exit_status.py`). A command returns its exit status.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from broker.runtime.exit_status import (
    INTERRUPTED,
    NOT_USABLE,
)

if TYPE_CHECKING:
    import asyncio

COMMANDS: Mapping[str, str] = MappingProxyType({
    "serve": "broker.cli.serve",
    "health": "broker.cli.health",
    "config": "broker.cli.config",
    "top": "broker.cli.top",
    "segments": "broker.cli.segments",
    "time": "broker.cli.time",
    "retention": "broker.cli.retention",
    "compaction": "broker.cli.compaction",
    "groups": "broker.cli.groups.commands",
    "queues": "broker.cli.groups.queues",
    "transactions": "broker.cli.transactions",
    "clock": "broker.cli.clock",
    "dump": "broker.cli.dump",
    "verify": "broker.cli.verify",
    "backup": "broker.cli.tier.backup",
    "restore": "broker.cli.tier.restore",
    "tier": "broker.cli.tier.commands",
    "fleet": "broker.cli.fleet.commands",
    "users": "broker.cli.security.users",
    "acls": "broker.cli.security.acls",
    "tokens": "broker.cli.security.tokens",
    "explain": "broker.cli.explain",
    "bundle": "broker.cli.bundle",
    "spark": "pipeline.cli.main",
})  # fmt: skip
"""Module of each command; it has the command as `command`."""


class CommandFailed(click.ClickException):
    """A command could not do what was asked; the message says what to do."""

    def __init__(self, message: str, status: int) -> None:
        """`status` is the exit status. Remembers which command it was."""
        super().__init__(message)
        self.status = status
        self.ctx = click.get_current_context(silent=True)


class LazyCommands(click.Group):
    """Commands whose modules are imported when they are used, since `serve` must start at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command; a name that is none of ours is a mistake of the user."""
        module = COMMANDS.get(cmd_name)
        if module is None:
            from difflib import get_close_matches

            near = get_close_matches(cmd_name, COMMANDS, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            ctx.fail(f"there is no command {cmd_name!r}{hint}")
        try:
            command: click.Command = import_module(module).command
        except ModuleNotFoundError as error:
            if error.name != "pipeline":
                raise
            ctx.fail(
                "the Spark pipeline is not in the container image: pip install 'horolog[spark]'"
            )
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Runs the command; a closed output pipe ends it quietly."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0


def _show_version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    """Print the version line and end."""
    if asked:
        from broker.cli.version import version_line

        click.echo(version_line())
        context.exit()


@click.group(
    cls=LazyCommands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version, and whether the record walkers are compiled.",
)
@click.pass_context
def horolog(context: click.Context) -> int:
    """A broker that speaks the Kafka protocol and gets time right.

    serve runs the broker, health checks whether it is ready. top, segments, time, retention,
    compaction, groups, queues, transactions, clock and tier status ask a running broker over its
    HTTP port; users, acls and tokens over the Kafka protocol, the first two also change a directory
    that no broker uses. dump and verify read files of a data directory, explain describes events
    and exit statuses: these need no broker. backup copies a data directory, restore makes one out
    of a back-up or a tier's object store, tier verify proves either whole. fleet shows and changes
    the rows of several brokers that are one. bundle writes a support archive. spark runs jobs over
    whole topics.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
    return NOT_USABLE


def main(
    arguments: Sequence[str] | None = None,
    loop_factory: "Callable[[], asyncio.AbstractEventLoop] | None" = None,
) -> int:
    """Parses and runs; returns the exit status. `loop_factory` None means asyncio's own loop."""
    try:
        status: int | None = horolog.main(
            arguments, prog_name="horolog", standalone_mode=False, obj=loop_factory
        )
    except click.ClickException as error:
        _say(error)
        return error.status if isinstance(error, CommandFailed) else error.exit_code
    except click.Abort:
        return INTERRUPTED
    return status or 0


def _say(error: click.ClickException) -> None:
    """One line: what was wrong, and where the right way is written."""
    context = error.ctx if isinstance(error, click.UsageError | CommandFailed) else None
    path = context.command_path if context else "horolog"
    hint = f" (see {path} --help)" if context and isinstance(error, click.UsageError) else ""
    click.echo(f"{path}: {' '.join(error.format_message().split())}{hint}", err=True)
