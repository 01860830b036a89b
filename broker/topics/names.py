"""Names of topics that are refused, those that collide, and the broker's own: Kafka's rules."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode, KafkaError
from storage.files.topic_name import fault_in_name

if TYPE_CHECKING:
    from config.broker import BrokerConfig

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})


def check_name(name: str) -> None:
    """Raises INVALID_TOPIC_EXCEPTION (17) for a name that no topic can have."""
    fault = fault_in_name(name)
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {fault}")


def collision_key(name: str) -> str:
    """Names with the same key would share metric names in Kafka's tools: `.` equals `_`."""
    return name.replace(".", "_")


def find_collision(name: str, keys: Mapping[str, str]) -> str | None:
    """A topic that differs from `name` in `.` and `_` only; None when there is none.

    `keys` holds the topics by their `collision_key`.
    """
    return keys.get(collision_key(name))


def internal_topics(settings: "BrokerConfig") -> frozenset[str]:
    """The topics that belong to the broker itself."""
    return INTERNAL_TOPICS | audit_topics(settings)


def audit_topics(settings: "BrokerConfig") -> frozenset[str]:
    """Those of audits, of records' times and of security, as far as they are wanted."""
    names = settings.horolog_audit_topic, settings.horolog_security_audit_topic
    return frozenset(filter(None, names))


def check_not_internal(name: str | None, internal: Collection[str]) -> None:
    """Raises INVALID_TOPIC_EXCEPTION (17) for a topic that clients may read but not change.

    `internal`: see `TopicCatalog.internal_topics`.
    """
    if name in internal:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' can be changed by the broker only."
        )
