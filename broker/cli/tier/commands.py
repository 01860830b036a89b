"""`horolog tier`: the state of the tier, and the proof that its store is whole."""

import click

from broker.cli.tier.status import status
from broker.cli.tier.verify import verify


@click.group("tier", no_args_is_help=False)
def command() -> None:
    """Show the state of the tier, and prove that its object store is whole."""


command.add_command(status)
command.add_command(verify)
