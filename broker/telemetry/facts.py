"""Facts about a client that subscriptions to its metrics are matched with (KIP-714)."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from storage.files.meta_properties import kafka_uuid


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
