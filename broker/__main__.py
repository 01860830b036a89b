"""The process's entry: `python -m broker serve`, `horolog serve`. Only here is uvloop imported."""

import asyncio
import sys
from collections.abc import Callable

from broker.cli import main as run_command


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Of uvloop where it is installed; None leaves asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def main() -> int:
    """Runs the command line; returns the exit status."""
    return run_command(loop_factory=loop_factory())


if __name__ == "__main__":
    sys.exit(main())
