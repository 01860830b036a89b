"""Facts about a client that subscriptions to its metrics are matched with (KIP-714)."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from storage.files.meta_properties import kafka_uuid

MOST_CHARACTERS = 256
"""Of a fact that the client itself gives: the rest is cut off, for matching and for labels."""
UNKNOWN = "unknown"
"""Name and version of a client's software, where it gives none, as in Kafka."""


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """Facts that are known of the client that sent a request."""

    client_id: str | None
    software_name: str
    software_version: str
    address: str
    port: int

    def by_name(self, instance_id: UUID) -> Mapping[str, str | None]:
        """The facts by the names that patterns are for; None matches no pattern."""
        return {
            "client_instance_id": kafka_uuid(instance_id),
            "client_id": self.client_id,
            "client_software_name": self.software_name,
            "client_software_version": self.software_version,
            "client_source_address": self.address,
            "client_source_port": str(self.port),
        }


class ClientSoftware:
    """Names and versions that clients gave for their software (KIP-511), by connection."""

    def __init__(self, *, is_on: bool) -> None:
        """Keeps nothing unless `is_on`."""
        self._is_on = is_on
        self._named: dict[int, tuple[str, str]] = {}

    def __len__(self) -> int:
        """Connections whose clients gave a name."""
        return len(self._named)

    def named(self, connection_id: int, name: str, version: str) -> None:
        """Keeps the words of a client about itself, until its connection ends."""
        if self._is_on:
            self._named[connection_id] = name[:MOST_CHARACTERS], version[:MOST_CHARACTERS]

    def of(self, connection_id: int) -> tuple[str, str]:
        """Name and version."""
        return self._named.get(connection_id, (UNKNOWN, UNKNOWN))

    def connection_lost(self, connection_id: int) -> None:
        """Forgets a connection."""
        self._named.pop(connection_id, None)
