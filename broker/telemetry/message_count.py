"""Count of the messages in a protobuf message, before the library makes an object of each.

The library reads a whole push in one call, in which nothing else runs, and takes 130 bytes and 0.2
microseconds for a message of two bytes. This walk makes no objects, and others run meanwhile.
"""

from collections.abc import Mapping
from typing import Protocol

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_SIZES = {FIXED64: 8, FIXED32: 4}
_MOST_BITS = 64


class MessageKind(Protocol):
    """A kind of message, as the library describes it."""

    @property
    def fields_by_number(self) -> Mapping[int, "MessageField"]:
        """Its fields."""


class MessageField(Protocol):
    """A field of a message."""

    @property
    def message_type(self) -> MessageKind | None:
        """The kind of message in it; None for a plain value."""


class BadMessage(ValueError):  # noqa: N818 - the state it found
    """Bytes that are no protobuf message."""


class TooManyMessages(ValueError):  # noqa: N818 - the state it found
    """More messages than the limit."""


def check_message_count(data: bytes, kind: MessageKind, most: int) -> None:
    """TooManyMessages for more than `most` in all, BadMessage for bytes that are none."""
    waiting = [(0, len(data), kind)]
    left = most
    while waiting:
        at, end, kind = waiting.pop()
        fields = kind.fields_by_number
        while at < end:
            tag, at = _varint(data, at, end)
            at, size = _value(data, at, end, tag & 7)
            field = fields.get(tag >> 3) if tag & 7 == LENGTH else None
            if field is not None and field.message_type is not None:
                left -= 1
                if left < 0:
                    raise TooManyMessages(f"more than {most} messages")
                waiting.append((at, at + size, field.message_type))
            at += size


def _value(data: bytes, at: int, end: int, wire_type: int) -> tuple[int, int]:
    """Position of a value, behind its length, and its size in bytes."""
    if wire_type == VARINT:
        _, after = _varint(data, at, end)
        return after, 0
    if wire_type == LENGTH:
        size, at = _varint(data, at, end)
    else:
        size = _SIZES.get(wire_type, end)  # groups are of an older protobuf, and in no push
    if size > end - at:
        raise BadMessage(f"a value of {size} bytes at byte {at}")
    return at, size


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    number = shift = 0
    while at < end and shift < _MOST_BITS:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
    raise BadMessage(f"a number without an end at byte {at}")
