"""Values of settings of SASL."""

from dataclasses import dataclass

from config.values import KafkaType

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN", "OAUTHBEARER")
IN_CLEAR = ("PLAIN", "OAUTHBEARER")
"""Mechanisms that send the secret itself."""


@dataclass(frozen=True, slots=True)
class SaslMechanisms:
    """A list of mechanisms, at least one."""

    @property
    def kafka_type(self) -> KafkaType:
        """LIST, as Kafka reports it."""
        return KafkaType.LIST

    def parse(self, text: str) -> tuple[str, ...]:
        """ValueError for one that is not served."""
        names = tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
        if not names:
            raise ValueError(f"at least one mechanism is needed, of {', '.join(MECHANISMS)}")
        for name in names:
            if name == "GSSAPI":
                raise ValueError("GSSAPI (Kerberos), Kafka's default, is not served: use SCRAM")
            if name not in MECHANISMS:
                raise ValueError(f"{name} is not one of {', '.join(MECHANISMS)}")
        return names

    def canonical(self, text: str) -> str:
        """Without blanks."""
        return ",".join(self.parse(text))

    def bounds(self) -> str:
        """For the documentation."""
        return f"a list of {', '.join(MECHANISMS)}"
