"""Addresses as settings write them: `NAME://host:port` lists, and `host:port`.

An empty host means every address of the machine; port 0 lets the system choose.
"""

import re
from dataclasses import dataclass

from config.values import KafkaType

_LISTENER = re.compile(
    r"([A-Za-z0-9_.-]+)://(\[[0-9A-Fa-f:.%]+\]|[^:/\[\]]*):(\d{1,9})/?", re.ASCII
)
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^:/\[\]]*):(\d{1,9})", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Listener:
    """A named address. `host` has no brackets; empty is every address of the machine."""

    name: str
    host: str
    port: int

    @property
    def is_wildcard(self) -> bool:
        """True when the host stands for every address, so that no client could dial it."""
        return self.host in ("", "0.0.0.0", "::")  # noqa: S104 - compared, not bound

    def __str__(self) -> str:
        """As the setting writes it."""
        return f"{self.name}://{_bracketed(self.host)}:{self.port}"


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port, for a port that clients do not learn by name."""

    host: str
    port: int

    def __str__(self) -> str:
        """As the setting writes it."""
        return f"{_bracketed(self.host)}:{self.port}"


@dataclass(frozen=True, slots=True)
class Listeners:
    """A list of listeners with different names; `optional` allows the empty list."""

    optional: bool = False

    @property
    def kafka_type(self) -> KafkaType:
        """Kafka reports listeners as LIST."""
        return KafkaType.LIST

    def parse(self, text: str) -> tuple[Listener, ...]:
        """ValueError naming the entry that is wrong."""
        found = tuple(_listener(part.strip()) for part in text.split(",") if part.strip())
        if not found and not self.optional:
            raise ValueError("at least one listener is needed, such as PLAINTEXT://127.0.0.1:9092")
        names = [each.name for each in found]
        if len(set(names)) < len(names):
            raise ValueError(f"each listener needs a name of its own: {', '.join(names)}")
        return found

    def canonical(self, text: str) -> str:
        """Names in capitals, no blanks."""
        return ",".join(map(str, self.parse(text)))

    def bounds(self) -> str:
        """For the documentation."""
        return "a list of NAME://host:port" + (", or empty" if self.optional else "")


@dataclass(frozen=True, slots=True)
class HostPort:
    """One `host:port`, or empty for none."""

    @property
    def kafka_type(self) -> KafkaType:
        """STRING."""
        return KafkaType.STRING

    def parse(self, text: str) -> Address | None:
        """ValueError when it is no host:port; None for the empty text."""
        if not text.strip():
            return None
        match = _ADDRESS.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is not host:port")
        return Address(match[1].strip("[]"), _port(match[2]))

    def canonical(self, text: str) -> str:
        """Without blanks."""
        return text.strip()

    def bounds(self) -> str:
        """For the documentation."""
        return "host:port, or empty for none"


@dataclass(frozen=True, slots=True)
class ListenerName:
    """The name of a listener, or empty for none."""

    @property
    def kafka_type(self) -> KafkaType:
        """STRING."""
        return KafkaType.STRING

    def parse(self, text: str) -> str:
        """In capitals, as `Listener.name`; ValueError when nothing can be called so."""
        name = text.strip().upper()
        if name and _NAME.fullmatch(name) is None:
            raise ValueError(f"{text!r} is no name of a listener")
        return name

    def canonical(self, text: str) -> str:
        """In capitals."""
        return self.parse(text)

    def bounds(self) -> str:
        """For the documentation."""
        return "the name of a listener, or empty"


def _listener(text: str) -> Listener:
    match = _LISTENER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not NAME://host:port")
    return Listener(match[1].upper(), match[2].strip("[]"), _port(match[3]))


def _port(text: str) -> int:
    port = int(text)
    if port > 65_535:
        raise ValueError(f"{port} is not a port: 0 to 65535")
    return port


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
