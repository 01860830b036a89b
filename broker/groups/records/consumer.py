"""Records of consumer groups (KIP-848) in `__consumer_offsets`: Kafka 4.3's schemas.

A key begins with its kind (two bytes), a value with its version, which is 0. 3: the group's epoch.
5: a member's own statements. 6: the epoch of the target assignment. 7: a member's target.
8: what a member has. 16: the topics that a regular expression matched. Kind 4, which Kafka wrote
before 4.1, is stepped over.
"""

from enum import IntEnum
from typing import Any, NamedTuple
from uuid import UUID

from broker.groups.records.assigned import framed_key, framed_value, read_key, read_value
from protocol.codec import decode, encode_bytes
from protocol.schema import field, message
from protocol.types import Array, Bytes, Int8, Int32, Int64, String, Uuid
from protocol.wire import read_uvarint, uvarint

CLASSIC_TAG = 0


class RecordKind(IntEnum):
    """Kinds of records."""

    GROUP = 3
    MEMBER = 5
    TARGET_EPOCH = 6
    TARGET = 7
    CURRENT = 8
    REGEX = 16


@message(flexible_from=0)
class GroupValue:
    """The group's epoch; the hash changes with the topics that its members read."""

    epoch: int = field(Int32)
    metadata_hash: int = field(Int64, tag=0, default=0)


@message
class ClassicProtocol:
    """A protocol that a classic member knows, and what it says of itself in it."""

    name: str = field(String)
    metadata: bytes = field(Bytes)


@message(flexible_from=0)
class ClassicMember:
    """Of a member that speaks the classic protocol in a consumer group."""

    session_timeout_ms: int = field(Int32)
    supported_protocols: list[ClassicProtocol] = field(Array(ClassicProtocol))


@message(flexible_from=0)
class MemberValue:
    """A member's own statements; an empty or no expression matches nothing."""

    instance_id: str | None = field(String, nullable=True)
    rack_id: str | None = field(String, nullable=True)
    client_id: str = field(String)
    client_host: str = field(String)
    subscribed_topic_names: list[str] = field(Array(String))
    subscribed_topic_regex: str | None = field(String, nullable=True)
    rebalance_timeout_ms: int = field(Int32, default=-1)
    server_assignor: str | None = field(String, nullable=True)


class Said(NamedTuple):
    """All that is remembered of what a member says of itself."""

    value: MemberValue
    classic: ClassicMember | None
    """Set of a member that speaks the classic protocol."""


@message(flexible_from=0)
class TargetEpochValue:
    """The group's epoch that the target was made for, and when (ms since 1970)."""

    epoch: int = field(Int32)
    timestamp: int = field(Int64, tag=0, default=0)


@message
class TargetPartitions:
    """Partitions of one topic."""

    topic_id: UUID = field(Uuid)
    partitions: list[int] = field(Array(Int32))


@message(flexible_from=0)
class TargetValue:
    """Partitions that a member is to read."""

    topic_partitions: list[TargetPartitions] = field(Array(TargetPartitions))


@message
class CurrentPartitions:
    """Partitions of one topic, and the epochs in which the member was given each."""

    topic_id: UUID = field(Uuid)
    partitions: list[int] = field(Array(Int32))
    assignment_epochs: list[int] | None = field(Array(Int32), tag=0, nullable=True, default=None)


@message(flexible_from=0)
class CurrentValue:
    """Partitions that a member reads, and those that it has yet to give back."""

    member_epoch: int = field(Int32)
    previous_member_epoch: int = field(Int32)
    state: int = field(Int8)
    assigned: list[CurrentPartitions] = field(Array(CurrentPartitions))
    pending_revocation: list[CurrentPartitions] = field(Array(CurrentPartitions))


@message(flexible_from=0)
class RegexValue:
    """The topics that an expression matched; when, in ms since 1970."""

    topics: list[str] = field(Array(String))
    version: int = field(Int64)
    timestamp: int = field(Int64)


VALUES: dict[RecordKind, type[Any]] = {
    RecordKind.GROUP: GroupValue,
    RecordKind.MEMBER: MemberValue,
    RecordKind.TARGET_EPOCH: TargetEpochValue,
    RecordKind.TARGET: TargetValue,
    RecordKind.CURRENT: CurrentValue,
    RecordKind.REGEX: RegexValue,
}
_OF_THE_GROUP = {RecordKind.GROUP, RecordKind.TARGET_EPOCH}


class ConsumerRow(NamedTuple):
    """One record; `part` is a member or an expression, `value` None for what went."""

    kind: RecordKind
    group: str
    part: str
    value: Any


def key_of(kind: RecordKind, group: str, part: str = "") -> bytes:
    """The key of a record."""
    return framed_key(kind, group, None if kind in _OF_THE_GROUP else part)


def value_of(value: object) -> bytes:
    """The value of a record."""
    if isinstance(value, Said):
        # Kafka says in a tagged field, always and in its own way, whether the member is a classic
        # one: 0, or 1 and the struct.
        field_bytes = b"\0"
        if value.classic is not None:
            field_bytes = b"\1" + encode_bytes(value.classic, 0)
        tags = b"\1\0" + uvarint(len(field_bytes)) + field_bytes
        return framed_value(value.value)[:-1] + tags
    return framed_value(value)


def read_consumer_row(kind: RecordKind, key: bytes, value: bytes | None) -> ConsumerRow:
    """Parses a record. DecodeError for a damaged one, or one of an unknown version."""
    group, part = read_key(key, has_part=kind not in _OF_THE_GROUP)
    return ConsumerRow(kind, group, part, None if value is None else _value(kind, value))


def _value(kind: RecordKind, value: bytes) -> Any:
    read = read_value(VALUES[kind], value, "consumer")
    return Said(read, _classic_of(read, value)) if isinstance(read, MemberValue) else read


def _classic_of(read: MemberValue, value: bytes) -> ClassicMember | None:
    """Parses the tagged fields; they begin where the others end."""
    at = len(framed_value(read)) - 1
    count, at = read_uvarint(value, at)
    for _ in range(count):
        tag, at = read_uvarint(value, at)
        size, at = read_uvarint(value, at)
        if tag == CLASSIC_TAG and value[at : at + 1] == b"\1":
            return decode(ClassicMember, 0, value[: at + size], at + 1)
        at += size
    return None
