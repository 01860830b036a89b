"""Subscriptions and assignments inside of the classic protocol.

Kafka's embedded protocol of consumers ("consumer"): a version, then a subscription (0 to 3) or an
assignment. What a later version adds at the end is not needed.
"""

from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Any, TypeVar

from protocol.codec import decode, encode_bytes
from protocol.errors import DecodeError
from protocol.schema import field, message
from protocol.types import Array, Bytes, Int32, String

T = TypeVar("T")

_VERSION = Struct(">h")
NEWEST_VERSION = 3


@message
class MemberPartitions:
    """Partitions of one topic."""

    topic: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message(flexible_from=None)
class Subscription:
    """Topics that a member reads, and partitions that it has."""

    topics: list[str] = field(Array(String))
    user_data: bytes | None = field(Bytes, nullable=True, default=None)
    owned: list[MemberPartitions] = field(Array(MemberPartitions), since=1)
    generation_id: int = field(Int32, since=2, default=-1)
    rack_id: str | None = field(String, since=3, nullable=True, default=None)


@message(flexible_from=None)
class EmbeddedAssignment:
    """Partitions that a member is to read."""

    assigned: list[MemberPartitions] = field(Array(MemberPartitions))
    user_data: bytes | None = field(Bytes, nullable=True, default=None)


def version_of(data: bytes) -> int:
    """The version of a subscription or an assignment. DecodeError when there is none."""
    if len(data) < _VERSION.size or (version := _VERSION.unpack_from(data)[0]) < 0:
        raise DecodeError("no version of the consumers' protocol")
    return min(int(version), NEWEST_VERSION)


def read_subscription(data: bytes) -> Subscription:
    """Parses the subscription of a member. DecodeError."""
    return _read(Subscription, data)


def read_assignment(data: bytes) -> Mapping[str, list[int]]:
    """Parses an assignment; empty for no bytes. DecodeError."""
    if not data:
        return {}
    return {each.topic: each.partitions for each in _read(EmbeddedAssignment, data).assigned}


def assignment_bytes(partitions: Iterable[tuple[str, list[int]]], version: int) -> bytes:
    """Encodes an assignment."""
    assigned = [MemberPartitions(topic=name, partitions=indexes) for name, indexes in partitions]
    return _VERSION.pack(version) + encode_bytes(EmbeddedAssignment(assigned=assigned), version)


def _read(cls: type[T], data: bytes) -> T:
    version = version_of(data)
    read: Any = decode(cls, version, memoryview(data), _VERSION.size)
    return read  # type: ignore[no-any-return]
