"""Records of share groups (KIP-932) in `__consumer_offsets`: Kafka 4.3's schemas.

A key begins with its kind (two bytes), a value with its version, which is 0. 10: a member's own
statements. 11: the group's epoch. 12: the epoch of the target assignment. 13: a member's target.
14: what a member has. 15: partitions whose state is being made, is made, is being deleted.
"""

from enum import IntEnum
from typing import Any, NamedTuple
from uuid import UUID

from broker.groups.records.assigned import framed_key, read_key, read_value
from broker.groups.records.consumer import TargetEpochValue, TargetPartitions, TargetValue
from protocol.schema import field, message
from protocol.types import Array, Int8, Int32, Int64, String, Uuid


class ShareKind(IntEnum):
    """Kinds of records."""

    MEMBER = 10
    GROUP = 11
    TARGET_EPOCH = 12
    TARGET = 13
    CURRENT = 14
    STATES = 15


@message(flexible_from=0)
class ShareMemberValue:
    """A member's own statements."""

    rack_id: str | None = field(String, nullable=True)
    client_id: str = field(String)
    client_host: str = field(String)
    subscribed_topic_names: list[str] = field(Array(String))


@message(flexible_from=0)
class ShareGroupValue:
    """The group's epoch; the hash changes with the topics that its members read."""

    epoch: int = field(Int32)
    metadata_hash: int = field(Int64)


@message(flexible_from=0)
class ShareCurrentValue:
    """Partitions that a member reads."""

    member_epoch: int = field(Int32)
    previous_member_epoch: int = field(Int32)
    state: int = field(Int8)
    assigned: list[TargetPartitions] = field(Array(TargetPartitions))


@message
class StatePartitions:
    """Partitions of a topic whose state is being made, or is made."""

    topic_id: UUID = field(Uuid)
    topic_name: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message
class StateTopicGone:
    """A topic whose state is being deleted."""

    topic_id: UUID = field(Uuid)
    topic_name: str = field(String)


@message(flexible_from=0)
class ShareStatesValue:
    """States of the partitions that the group reads."""

    initializing: list[StatePartitions] = field(Array(StatePartitions))
    initialized: list[StatePartitions] = field(Array(StatePartitions))
    deleting: list[StateTopicGone] = field(Array(StateTopicGone))


VALUES: dict[ShareKind, type[Any]] = {
    ShareKind.MEMBER: ShareMemberValue,
    ShareKind.GROUP: ShareGroupValue,
    ShareKind.TARGET_EPOCH: TargetEpochValue,
    ShareKind.TARGET: TargetValue,
    ShareKind.CURRENT: ShareCurrentValue,
    ShareKind.STATES: ShareStatesValue,
}
_OF_MEMBERS = {ShareKind.MEMBER, ShareKind.TARGET, ShareKind.CURRENT}


class ShareRow(NamedTuple):
    """One record; `member` is empty for one of the group, `value` None for what went."""

    kind: ShareKind
    group: str
    member: str
    value: Any


def share_key(kind: ShareKind, group: str, member: str = "") -> bytes:
    """The key of a record."""
    return framed_key(kind, group, member if kind in _OF_MEMBERS else None)


def read_share_row(kind: ShareKind, key: bytes, value: bytes | None) -> ShareRow:
    """Parses a record. DecodeError for a damaged one, or one of an unknown version."""
    group, member = read_key(key, has_part=kind in _OF_MEMBERS)
    read = None if value is None else read_value(VALUES[kind], value, "share")
    return ShareRow(kind, group, member, read)
