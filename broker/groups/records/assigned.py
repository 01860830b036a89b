"""Framing of the records of groups that the broker assigns for, whatever their protocol.

A key begins with its kind (two bytes) and names the group, or a part of it as well. A value begins
with its version, which is 0.
"""

from struct import Struct
from typing import TypeVar

from protocol.codec import decode, encode_bytes
from protocol.errors import DecodeError
from protocol.schema import field, message
from protocol.types import String

T = TypeVar("T")

SHORT = Struct(">h")


@message(flexible_from=None)
class GroupKey:
    """Of a record about a group."""

    group: str = field(String)


@message(flexible_from=None)
class PartKey:
    """Of a record about a part of a group: a member, or a regular expression."""

    group: str = field(String)
    part: str = field(String)


def framed_key(kind: int, group: str, part: str | None) -> bytes:
    """The key of a record; `part` is None for one about the group."""
    key: object = GroupKey(group=group) if part is None else PartKey(group=group, part=part)
    return SHORT.pack(kind) + encode_bytes(key, 0)


def framed_value(value: object) -> bytes:
    """The value of a record."""
    return SHORT.pack(0) + encode_bytes(value, 0)


def read_key(key: bytes, *, has_part: bool) -> tuple[str, str]:
    """The group, and the part of it or an empty text. DecodeError."""
    if not has_part:
        return decode(GroupKey, 0, key, SHORT.size).group, ""
    named = decode(PartKey, 0, key, SHORT.size)
    return named.group, named.part


def read_value(schema: type[T], value: bytes, kind: str) -> T:
    """A value. DecodeError for a damaged one, or one of an unknown version; `kind` of group."""
    if len(value) < SHORT.size:
        raise DecodeError(f"a record of a {kind} group is shorter than its version")
    if (version := SHORT.unpack_from(value)[0]) != 0:
        raise DecodeError(f"version {version} of a record of a {kind} group, known is 0")
    return decode(schema, 0, memoryview(value), SHORT.size)
