"""Lists of users as settings write them: `User:NAME`, separated by semicolons.

Names of certificates have commas, so commas separate nothing (Kafka's rule).
"""

from dataclasses import dataclass

from config.values import KafkaType


@dataclass(frozen=True, slots=True)
class Principals:
    """Users; empty is allowed."""

    @property
    def kafka_type(self) -> KafkaType:
        """STRING: the list is Kafka's authorizer's, not its configuration's."""
        return KafkaType.STRING

    def parse(self, text: str) -> tuple[str, ...]:
        """ValueError naming the part that is no user."""
        found = [part.strip() for part in text.split(";") if part.strip()]
        for each in found:
            kind, _, name = each.partition(":")
            if kind != "User" or not name:
                raise ValueError(f"{each!r} is not User:NAME")
        return tuple(dict.fromkeys(found))

    def canonical(self, text: str) -> str:
        """Without blanks and repetitions."""
        return ";".join(self.parse(text))

    def bounds(self) -> str:
        """For the documentation."""
        return "a list of User:NAME with semicolons between, or empty"
