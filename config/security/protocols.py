"""Security protocols of listeners, as `listener.security.protocol.map` names them."""

import re
from dataclasses import dataclass

from config.values import KafkaType

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
"""All that Kafka has."""
HTTP = "HTTP"
"""Name of the HTTP port where settings and metrics name listeners."""
TLS, SASL = (SSL, SASL_SSL), (SASL_PLAINTEXT, SASL_SSL)
_ENTRY = re.compile(r"([A-Za-z0-9_.-]+):([A-Za-z_]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class NamedProtocol:
    """A listener's name in capitals, and the protocol that it speaks."""

    listener: str
    protocol: str

    def __str__(self) -> str:
        """As the setting writes it."""
        return f"{self.listener}:{self.protocol}"


KAFKAS_MAP = tuple(NamedProtocol(each, each) for each in PROTOCOLS)
"""The default: a listener that is called as a protocol speaks it."""


@dataclass(frozen=True, slots=True)
class ProtocolMap:
    """A list of NAME:PROTOCOL with different names."""

    @property
    def kafka_type(self) -> KafkaType:
        """Kafka reports the map as STRING."""
        return KafkaType.STRING

    def parse(self, text: str) -> tuple[NamedProtocol, ...]:
        """ValueError naming the entry that is wrong."""
        found = tuple(_entry(part.strip()) for part in text.split(",") if part.strip())
        names = [each.listener for each in found]
        if len(set(names)) < len(names):
            raise ValueError(f"each listener has one protocol: {', '.join(names)}")
        return found

    def canonical(self, text: str) -> str:
        """In capitals, without blanks."""
        return ",".join(map(str, self.parse(text)))

    def bounds(self) -> str:
        """For the documentation."""
        return f"a list of NAME:PROTOCOL, of {', '.join(PROTOCOLS)}"


def _entry(text: str) -> NamedProtocol:
    match = _ENTRY.fullmatch(text)
    if match is None or match[2].upper() not in PROTOCOLS:
        raise ValueError(f"{text!r} is not NAME:PROTOCOL, of {', '.join(PROTOCOLS)}")
    return NamedProtocol(match[1].upper(), match[2].upper())
