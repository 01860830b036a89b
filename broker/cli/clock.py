"""`horolog clock`: what the broker takes the time to be, and the clock that tests hold."""

import click

from broker.cli.admin_client import AdminPort, Answer, live, print_json
from broker.cli.time_arguments import TimesCommand, exactly, when

HANDS = click.Choice(("both", "wall"))


class ClockCommands(click.Group):
    """Without a command of its own, `horolog clock` shows the clock."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Options alone are those of `show`."""
        names = ctx.help_option_names
        if not args or (args[0].startswith("-") and args[0] not in names):
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(
    "clock", cls=ClockCommands, short_help="Show or confirm the broker's clock; move it in tests."
)
def command() -> None:
    """Show the broker's clock and its holds; move the clock of a test broker.

    Without a command it is shown. freeze, step, set, speed and release need a broker that was
    started with serve --test-clock. They return once everything that was due has run.
    """


@command.command("show", short_help="Show the wall clock, steps seen, and a hold, if any.")
@live
def show(port: AdminPort, *, as_json: bool) -> int:
    """Show the wall clock, the steps seen, and whether deletion and rolling by time are
    suspended.
    """
    return _printed(port.get("/api/clock"), as_json=as_json)


@command.command("confirm", short_help="Confirm that the clock is right: end the hold.")
@live
def confirm(port: AdminPort, *, as_json: bool) -> int:
    """The clock is right: end the hold on deletion and rolling by time."""
    answer = port.post("/api/clock/confirm")
    if not as_json:
        click.echo("The hold is over." if answer["hold_ended"] else "There was no hold.")
    return _printed(answer, as_json=as_json)


@command.command("freeze")
@live
def freeze(port: AdminPort, *, as_json: bool) -> int:
    """Let time stand still."""
    return _printed(port.post("/api/clock/freeze"), as_json=as_json)


@command.command("release", short_help="Let time run at the speed of the machine's clock.")
@live
def release(port: AdminPort, *, as_json: bool) -> int:
    """Let time go on from where it is, as fast as the machine's."""
    return _printed(port.post("/api/clock/release"), as_json=as_json)


@command.command("speed")
@click.argument("factor", type=click.FloatRange(0))
@live
def speed(port: AdminPort, factor: float, *, as_json: bool) -> int:
    """Let FACTOR seconds pass in one of the machine's."""
    return _printed(port.post("/api/clock/speed", factor=factor), as_json=as_json)


@command.command("step", cls=TimesCommand, short_help="Let an amount of time pass.")
@click.argument("by")
@click.option("--every", metavar="DURATION", help="Interval at which tasks that are due run.")
@click.option(
    "--clock",
    type=HANDS,
    default="both",
    show_default=True,
    help="both: time passes. wall: only the wall clock is set.",
)
@live
def step(port: AdminPort, by: str, *, every: str | None, clock: str, as_json: bool) -> int:
    """Let BY pass: 90s, 7d; or move the wall clock alone by it, -1h back.

    \b
    horolog clock step 7d --every 1h
    horolog clock step -1h --clock wall
    """
    return _printed(
        port.post("/api/clock/step", by=by.strip(), every=every, clock=clock), as_json=as_json
    )


@command.command("set", cls=TimesCommand, short_help="Set the wall clock.")
@click.argument("to")
@click.option(
    "--clock",
    type=HANDS,
    default="wall",
    show_default=True,
    help="wall: only the wall clock is set. both: time passes until TO.",
)
@live
def set_time(port: AdminPort, to: str, *, clock: str, as_json: bool) -> int:
    """Set the wall clock to TO, or let time pass until then.

    TO is ISO-8601 (UTC without a zone), milliseconds since 1970, or from now: +7d.
    """
    return _printed(port.post("/api/clock/set", to=to.strip(), clock=clock), as_json=as_json)


def _printed(answer: Answer, *, as_json: bool) -> int:
    if as_json:
        return print_json(answer)
    click.echo(f"wall clock  {exactly(answer['wall'])}")
    held = answer["test_clock"]
    if held is not None:
        from config.quantities import span

        ahead = span(held["ahead_of_machine_ms"])
        click.echo(f"test clock  {held['state']}, speed {held['speed']:g}, ahead by {ahead}")
    hold = answer["hold"]
    if hold is None:
        click.echo("hold        none: segments go and roll by time")
    else:
        click.echo(f"hold        until {when(hold['until'])}: {hold['because']}")
        click.echo("            if the clock is right: horolog clock confirm")
    click.echo(f"steps seen  {answer['steps_seen']}")
    if "task_runs" in answer:
        click.echo(f"ran         {answer['task_runs']} tasks that were due")
    return 0
