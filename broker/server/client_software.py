"""Names and versions that clients give for their software (KIP-511)."""

from sys import intern

MOST_CHARACTERS = 256
"""Of a name or version: the rest is cut off, for matching and for labels."""
UNKNOWN = "unknown"
"""Name and version of a client's software, where it gives none, as in Kafka."""
LIBRDKAFKA = "rdkafka"
CONFLUENT = "confluent-kafka-"


class ClientSoftware:
    """By connection. Used from the event loop."""

    def __init__(self) -> None:
        """No client gave a name."""
        self._named: dict[int, tuple[str, str]] = {}

    def __len__(self) -> int:
        """Connections whose clients gave a name."""
        return len(self._named)

    def named(self, connection_id: int, name: str, version: str) -> None:
        """Keeps the words of a client about itself, until its connection ends."""
        self._named[connection_id] = (
            intern(name[:MOST_CHARACTERS]),
            intern(version[:MOST_CHARACTERS]),
        )

    def of(self, connection_id: int) -> tuple[str, str]:
        """Name and version."""
        return self._named.get(connection_id, (UNKNOWN, UNKNOWN))

    def is_librdkafka(self, connection_id: int) -> bool:
        """True for librdkafka, by itself or within the libraries of other languages.

        Those name themselves: confluent-kafka-python, rust-rdkafka; most add librdkafka's version
        to theirs.
        """
        name, version = self.of(connection_id)
        return LIBRDKAFKA in name or LIBRDKAFKA in version or name.startswith(CONFLUENT)

    def connection_lost(self, connection_id: int) -> None:
        """Forgets a connection."""
        self._named.pop(connection_id, None)
