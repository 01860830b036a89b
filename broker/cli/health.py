"""`horolog health`: is the broker ready, in one line and an exit status.

Without options `__main__` answers by itself, which spares a health check the loading of all this.
"""

import click

from broker.cli.probe import address_in_environment, ask


@click.command("health")
@click.option(
    "--http",
    "address",
    metavar="HOST:PORT",
    help="The broker's HTTP port (default HOROLOG_HTTP, else that of HOROLOG_HTTP_LISTENER, else "
    "127.0.0.1:9404). https://HOST:PORT for one with TLS.",
)
@click.option(
    "--ca-file",
    metavar="FILE",
    envvar="HOROLOG_HTTP_CA_FILE",
    show_envvar=True,
    help="Authorities, in PEM, of a broker with TLS; not needed on its own machine.",
)
def command(address: str | None, ca_file: str | None) -> int:
    """Ask whether the broker is ready: 0 and "ready", or 1 and why not."""
    status, text = ask(address or address_in_environment(), ca_file)
    click.echo(text)
    return status
