"""`horolog explain`: what a line of the log, or an exit status, means and what to do. Offline."""

import click

from broker.cli.main import CommandFailed
from broker.runtime.exit_status import NOT_USABLE


@click.command("explain", short_help="Explain a line of the log, and what to do.")
@click.argument("code", required=False)
def command(code: str | None) -> int:
    """Explain a line of the broker's log: what it means, and what to do.

    CODE is the value of event= in the line, such as disk_low; or exit-N for an exit status of
    serve. Without CODE all codes are listed.
    """
    from broker.explain.pages import CURRENT_CODES, PAGES, listed, near, page_text

    if code is None:
        click.echo(listed())
        return 0
    name = code.strip().removeprefix("event=")
    name = CURRENT_CODES.get(name, name)
    if name not in PAGES:
        hints = near(name)
        hint = f"; did you mean {', '.join(hints)}?" if hints else ": horolog explain lists all"
        raise CommandFailed(f"there is no code {code!r}{hint}", NOT_USABLE)
    click.echo(page_text(name))
    return 0
