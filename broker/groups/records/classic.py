"""The records of `__consumer_offsets`: Kafka's schemas of keys and values, and their bytes.

A key begins with its kind (two bytes): 0 and 1 name an offset, 2 a group of the classic protocol;
those of consumer, share and streams groups are in modules of their own, others belong to nothing
that is served and are stepped over. A value begins with its version. What is written
is what Kafka 4.3 writes: offsets in version 4 (with the topic's id), or in version 1 when an old
client asked for a time of its own; groups in version 3. All older versions are read.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from struct import Struct
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from broker.groups.records.consumer import ConsumerRow, RecordKind, read_consumer_row
from broker.groups.records.share import ShareKind, ShareRow, read_share_row
from broker.groups.records.streams import StreamsKind, StreamsRow, read_streams_row
from protocol.codec import decode, encode_bytes
from protocol.errors import DecodeError
from protocol.schema import field, message
from protocol.types import Array, Bytes, Int32, Int64, String, Uuid

T = TypeVar("T")

OFFSET_KINDS = (0, 1)
OFFSET_KIND, GROUP_KIND = 1, 2
NEWEST_OFFSET_VALUE, EXPIRING_OFFSET_VALUE = 4, 1
OLDEST_READABLE = 0
NEWEST_GROUP_VALUE, NEWEST_READABLE_GROUP_VALUE = 3, 4
NONE = -1
CONSUMER_KINDS, SHARE_KINDS = frozenset(RecordKind), frozenset(ShareKind)
STREAMS_KINDS = frozenset(StreamsKind)

SHORT_NAME = 255  # characters: longer names are not kept
KNOWN_KEYS = 4096

_VERSION = Struct(">h")


@message(flexible_from=None)
class OffsetCommitKey:
    """Key of a committed offset: group and partition."""

    group: str = field(String)
    topic: str = field(String)
    partition: int = field(Int32)


@message(flexible_from=4)
class OffsetCommitValue:
    """An offset; times in ms since 1970, -1 for none."""

    offset: int = field(Int64)
    leader_epoch: int = field(Int32, since=3, default=NONE)
    metadata: str = field(String)
    commit_timestamp: int = field(Int64)
    expire_timestamp: int = field(Int64, since=1, until=1, default=NONE)
    topic_id: UUID = field(Uuid, since=4, tag=0)


@message(flexible_from=None)
class GroupMetadataKey:
    """Key of a group's metadata."""

    group: str = field(String)


@message
class MemberMetadata:
    """One member as it is remembered over a restart; time-outs in ms."""

    member_id: str = field(String)
    group_instance_id: str | None = field(String, since=3, nullable=True)
    client_id: str = field(String)
    client_host: str = field(String)
    rebalance_timeout: int = field(Int32, since=1)
    session_timeout: int = field(Int32)
    subscription: bytes = field(Bytes)
    assignment: bytes = field(Bytes)


@message(flexible_from=4)
class GroupMetadataValue:
    """A generation of a group; `current_state_timestamp` is when it got into its state."""

    protocol_type: str = field(String)
    generation: int = field(Int32)
    protocol: str | None = field(String, nullable=True)
    leader: str | None = field(String, nullable=True)
    current_state_timestamp: int = field(Int64, since=2, default=NONE)
    members: list[MemberMetadata] = field(Array(MemberMetadata))


class OffsetRow(NamedTuple):
    """An offset that was committed; `value` is None for one that was taken back."""

    key: OffsetCommitKey
    value: OffsetCommitValue | None


class GroupRow(NamedTuple):
    """A generation that began; `value` is None for a group that went."""

    group: str
    value: GroupMetadataValue | None


def offset_key(group: str, topic: str, partition: int) -> bytes:
    """The key of a committed offset."""
    encode = _short_offset_key if len(group) <= SHORT_NAME else _offset_key
    return encode(group, topic, partition)


def _offset_key(group: str, topic: str, partition: int) -> bytes:
    key = OffsetCommitKey(group=group, topic=topic, partition=partition)
    return _VERSION.pack(OFFSET_KIND) + encode_bytes(key, 0)


_short_offset_key = lru_cache(KNOWN_KEYS)(_offset_key)
"""A consumer commits the same places again and again."""


def offset_value(value: OffsetCommitValue) -> bytes:
    """The value of a committed offset."""
    expires = value.expire_timestamp != NONE
    version = EXPIRING_OFFSET_VALUE if expires else NEWEST_OFFSET_VALUE
    return _VERSION.pack(version) + encode_bytes(value, version)


def group_key(group: str) -> bytes:
    """The key of a group's generation."""
    return _VERSION.pack(GROUP_KIND) + encode_bytes(GroupMetadataKey(group=group), 0)


def group_value(value: GroupMetadataValue) -> bytes:
    """The value of a group's generation."""
    return _VERSION.pack(NEWEST_GROUP_VALUE) + encode_bytes(value, NEWEST_GROUP_VALUE)


AnyRow = OffsetRow | GroupRow | ConsumerRow | ShareRow | StreamsRow


def read_row(key: bytes | None, value: bytes | None) -> AnyRow | None:
    """Parses a record; None for a kind that is not ours. DecodeError for a damaged one."""
    if key is None or len(key) < _VERSION.size:
        raise DecodeError("a record of groups without a key")
    kind = _VERSION.unpack_from(key)[0]
    if kind in OFFSET_KINDS:
        return OffsetRow(_body(OffsetCommitKey, key, lambda _: 0), _offset_value_of(value))
    if kind == GROUP_KIND:
        name = _body(GroupMetadataKey, key, lambda _: 0).group
        return GroupRow(name, _group_value_of(value))
    if kind in CONSUMER_KINDS:
        return read_consumer_row(RecordKind(kind), key, value)
    if kind in SHARE_KINDS:
        return read_share_row(ShareKind(kind), key, value)
    if kind in STREAMS_KINDS:
        return read_streams_row(StreamsKind(kind), key, value)
    return None


def _offset_value_of(value: bytes | None) -> OffsetCommitValue | None:
    checked = _within(NEWEST_OFFSET_VALUE)
    return None if value is None else _body(OffsetCommitValue, value, checked)


def _group_value_of(value: bytes | None) -> GroupMetadataValue | None:
    checked = _within(NEWEST_READABLE_GROUP_VALUE)
    return None if value is None else _body(GroupMetadataValue, value, checked)


def _body(cls: type[T], data: bytes, version_of: Callable[[int], int]) -> T:
    if len(data) < _VERSION.size:
        raise DecodeError("a record of groups is shorter than its version")
    version = version_of(_VERSION.unpack_from(data)[0])
    read: Any = decode(cls, version, memoryview(data), _VERSION.size)
    return read  # type: ignore[no-any-return]


@cache
def _within(newest: int) -> Callable[[int], int]:
    def check(version: int) -> int:
        if not OLDEST_READABLE <= version <= newest:
            raise DecodeError(f"version {version} of a record of groups, known are 0 to {newest}")
        return version

    return check
