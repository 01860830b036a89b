"""The command line: `horolog serve`, and the other commands, each in a module of its own.

Mistakes of the user end in one line on standard error and an exit status that says why: 1 bad
settings, 2 data directory or port not usable, 3 damage that cannot be mended, 4 a failed fsync.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence

from broker.cli_config import add_config_commands

BAD_SETTINGS, NOT_USABLE, CORRUPT, NOT_DURABLE = 1, 2, 3, 4


def parser() -> argparse.ArgumentParser:
    """All commands; each sets `run`."""
    root = argparse.ArgumentParser(
        prog="horolog", description="A broker that speaks the Kafka protocol and gets time right."
    )
    commands = root.add_subparsers(required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="run the broker")
    serve.add_argument("--config", metavar="FILE", help="YAML or server.properties")
    serve.add_argument("--data-dir", metavar="DIR", help="where the logs are (default ./data)")
    serve.add_argument("--listen", metavar="HOST:PORT", help="for clients; port 0 takes any")
    serve.add_argument("--http", metavar="HOST:PORT", help="for health and metrics; '' for none")
    serve.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="a setting by its key; may be repeated",
    )
    serve.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    serve.add_argument("--log-format", choices=("logfmt", "json"), default="logfmt")
    serve.set_defaults(run=run_serve)
    add_config_commands(commands)
    return root


def flags_of(arguments: argparse.Namespace) -> list[str]:
    """The options of `serve` as settings; `--set` wins over the named options."""
    flags = []
    if arguments.data_dir is not None:
        flags.append(f"log.dirs={arguments.data_dir}")
    if arguments.listen is not None:
        flags.append(f"listeners=PLAINTEXT://{arguments.listen}")
    if arguments.http is not None:
        flags.append(f"horolog.http.listener={arguments.http}")
    return flags + list(arguments.settings)


def run_serve(arguments: argparse.Namespace) -> int:
    """Runs the broker until it is told to stop; returns the exit status."""
    from broker.serve import serve

    return serve(
        flags=flags_of(arguments),
        file=arguments.config,
        log_level=arguments.log_level,
        log_as_json=arguments.log_format == "json",
        loop_factory=arguments.loop_factory,
    )


def main(
    arguments: Sequence[str] | None = None,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> int:
    """Parses and runs; returns the exit status. `loop_factory` None means asyncio's own loop."""
    parsed = parser().parse_args(arguments, argparse.Namespace(loop_factory=loop_factory))
    run: Callable[[argparse.Namespace], int] = parsed.run
    try:
        return run(parsed)
    except BrokenPipeError:  # whoever read our output has gone
        sys.stderr.close()
        return 0
