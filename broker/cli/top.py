"""`horolog top`: a live table of the partitions, the most urgent first: what goes next, what is
blocked.
"""

import time
from typing import TYPE_CHECKING

import click

from broker.cli.admin_client import NO_ANSWER, AdminError, AdminPort, Answer, live, print_json

if TYPE_CHECKING:
    from rich.console import Console

PAGE_PARTITIONS, MOST_PARTITIONS = 1000, 10_000
SHOWN_PARTITIONS = 50
BAD_CLOCKS = 3


@click.command("top", short_help="Show live what goes next and when, what is late, lag.")
@click.option("--topic", metavar="NAME", help="Show this topic only.")
@click.option("--internal", is_flag=True, help="Show the broker's own topics, too.")
@click.option(
    "--every",
    "seconds",
    metavar="SECONDS",
    type=click.FloatRange(0.2, 3600),
    default=2.0,
    show_default=True,
    help="Interval between two requests to the broker.",
)
@click.option("--once", is_flag=True, help="Print once, as text; the default without a terminal.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1),
    default=SHOWN_PARTITIONS,
    show_default=True,
    help="Number of partitions to print with --once.",
)
@live
def command(
    port: AdminPort,
    topic: str | None,
    *,
    internal: bool,
    seconds: float,
    once: bool,
    limit: int,
    as_json: bool,
) -> int:
    """Show what time does to each partition, the most urgent first.

    For each: the oldest record, how far back retention reaches, what goes next (segments leave, the
    active one ends, compaction is due) and when, what is blocked and since when, how far the last
    of its readers is behind by arrival. Below them the clients with bad clocks. Ctrl-C ends it.

    --json prints the whole answer once. The page at the HTTP port shows the same as a picture.
    """
    if as_json:
        return print_json(ask(port, topic, internal=internal))
    from rich.console import Console

    from broker.cli.top_view import show

    console = Console(highlight=False, markup=False, emoji=False)
    if once or not console.is_terminal:
        return show(ask(port, topic, internal=internal), limit)
    try:
        _watch(console, port, topic, seconds, internal=internal)
    except KeyboardInterrupt:
        return 0
    return 0


def ask(port: AdminPort, topic: str | None, *, internal: bool) -> Answer:
    """One answer with all partitions, and the clients with bad clocks as `bad_clocks`."""
    whole: Answer | None = None
    after = None
    while whole is None or (after is not None and len(whole["partitions"]) < MOST_PARTITIONS):
        page = port.get(
            "/api/timeline", topic=topic, internal=internal, limit=PAGE_PARTITIONS, after=after
        )
        after = page["next"]
        if whole is not None:
            page["partitions"] = whole["partitions"] + page["partitions"]
        whole = page
    whole["bad_clocks"] = port.get("/api/dirty", topic=topic, limit=BAD_CLOCKS)
    return whole


def _watch(
    console: "Console", port: AdminPort, topic: str | None, seconds: float, *, internal: bool
) -> None:
    """Asks and shows until it is interrupted; the last answer stays while the broker is away."""
    import signal

    from rich.live import Live

    from broker.cli.top_view import Screen

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the terminal is put back first
    screen = Screen(port.address, ask(port, topic, internal=internal))
    shown = Live(screen, console=console, screen=True, auto_refresh=False)
    try:  # `with` would leave the terminal as it is if interrupted while it begins
        shown.start()
        while True:
            shown.refresh()
            time.sleep(seconds)
            try:
                screen.answered(ask(port, topic, internal=internal))
            except AdminError as error:
                if error.status != NO_ANSWER:
                    raise
                screen.failed(error.message)
    finally:
        shown.stop()
