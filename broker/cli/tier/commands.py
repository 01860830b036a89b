"""`horolog tier`: the state of the tier, and the proof that its store is whole."""

import click

from broker.cli.tier.status import status


@click.group("tier", no_args_is_help=False)
def command() -> None:
    """Show the state of the tier: what is in the object store, and what waits."""


command.add_command(status)
