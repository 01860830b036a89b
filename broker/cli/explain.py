"""`horolog explain`: what a line of the log, or an exit status, means and what to do. Offline."""

import click

from broker.cli.main import CommandFailed
from broker.runtime.exit_status import NOT_USABLE


@click.command("explain", short_help="What a line of the log means, and what to do.")
@click.argument("code", required=False)
def command(code: str | None) -> int:
    """What a line of the log means, and what to do.

    CODE is what stands behind event= in the line, such as disk_low; or exit-N for an exit status of
    serve. Without CODE all of them are listed.
    """
    from broker.explain.pages import CURRENT_CODES, PAGES, listed, near, told

    if code is None:
        click.echo(listed())
        return 0
    name = code.strip().removeprefix("event=")
    name = CURRENT_CODES.get(name, name)
    if name not in PAGES:
        hints = near(name)
        hint = f"; did you mean {', '.join(hints)}?" if hints else ": horolog explain lists all"
        raise CommandFailed(f"there is no code {code!r}{hint}", NOT_USABLE)
    click.echo(told(name))
    return 0
