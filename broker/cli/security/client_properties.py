"""The settings of a client (`--command-config`), as Kafka's own tools have them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.access.errors import AccessError
from broker.access.files import read_settings
from broker.access.settings import IN_THE_CLEAR, ClientSecurity, client_security
from broker.cli.main import CommandFailed
from broker.runtime.exit_status import NOT_USABLE

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True)
class ClientProperties:
    """Settings with which a command reaches a broker, and its user."""

    security: ClientSecurity = IN_THE_CLEAR
    ca_file: str | None = None

    @property
    def login(self) -> tuple[str, str] | None:
        """User and password of `sasl.jaas.config`, of whatever login module."""
        return self.security.login

    def tls(self) -> "ssl.SSLContext":
        """The context for https. Raises CommandFailed naming the file that cannot be used."""
        from broker.access.tls import tls_context

        try:
            return tls_context(self.security.settings, self.ca_file)
        except AccessError as error:
            raise CommandFailed(str(error), NOT_USABLE) from error


def read_client_properties(path: str | None, ca_file: str | None) -> ClientProperties:
    """Those of a file, or none. Raises CommandFailed when it cannot be read.

    A file with a password or a key must not be readable by every user of the machine.
    """
    if path is None:
        return ClientProperties(ca_file=ca_file)
    try:
        return ClientProperties(client_security(read_settings(path)), ca_file)
    except AccessError as error:
        raise CommandFailed(f"--command-config {path}: {error}", NOT_USABLE) from error
