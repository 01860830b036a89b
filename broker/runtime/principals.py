"""Names of users: `User:NAME`, as Kafka's ACLs and quotas call them."""

from typing import NamedTuple

USER = "User"


class Principal(NamedTuple):
    """The user behind a connection. `kind` is always `User` in Kafka's own brokers."""

    kind: str
    name: str

    def __str__(self) -> str:
        """As Kafka's tools write it."""
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""Every client of a listener that asks for no user."""
