"""The process's entry: `python -m broker serve`, `horolog serve`. Only here is uvloop imported."""

import atexit
import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


def new_event_loop() -> "asyncio.AbstractEventLoop":
    """Of uvloop where it is installed, else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        import asyncio

        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def main() -> int:
    """Runs the command line; returns the exit status."""
    if sys.argv[1:] == ["health"]:  # asked every few seconds: without what other commands load
        from broker.cli.probe import main as check_health

        return check_health()
    from broker.cli.main import main as run_command

    atexit.register(gc.freeze)  # a last look for garbage takes up to a tenth of a second
    return run_command(loop_factory=new_event_loop)


if __name__ == "__main__":
    sys.exit(main())
