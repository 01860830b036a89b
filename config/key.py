"""Declaration of a setting: its name, its synonyms, its default, its documentation.

A `ConfigKey` is made by one statement in `topic.py` or `broker.py` and is all that validation,
DescribeConfigs, environment names and documentation are derived from.
"""

from dataclasses import dataclass
from typing import Any

from config.values import KafkaType, ValueType


@dataclass(frozen=True, slots=True)
class Spelling:
    """One name under which a key can be set, and how the text under that name is read."""

    name: str
    type: ValueType[Any]
    hidden: bool = False
    """Kept out of the documentation and of answers unless it is set (aliases, test keys)."""
    default_text: str = ""
    """Of the largest of several units of one time: the default of all of them, in this unit."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One setting. Spellings come in order of precedence within one layer of settings.

    `on_topic` has the names on the resource itself: a topic, a group, a subscription. It is empty
    for keys of the broker alone, `on_broker` for keys without broker default.
    """

    name: str
    attribute: str
    type: ValueType[Any]
    default: Any
    default_text: str
    doc: str
    on_topic: tuple[Spelling, ...]
    on_broker: tuple[Spelling, ...]
    dynamic: bool
    importance: str
    sensitive: bool

    @property
    def kafka_type(self) -> KafkaType:
        """The type that DescribeConfigs reports."""
        return self.type.kafka_type

    @property
    def units(self) -> tuple[Spelling, ...]:
        """The names on the broker of one time in several units, the smallest first; or none."""
        return self.on_broker if self.on_broker and self.on_broker[-1].default_text else ()

    @property
    def broker_name(self) -> str:
        """The first name of the broker's value; the key's own name when it has no other."""
        return self.on_broker[0].name if self.on_broker else self.name
