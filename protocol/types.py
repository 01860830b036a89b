"""Construct types of the Kafka protocol: what a message's fields are declared with.

Each type parses and builds by itself, with all limits, so a `construct.Struct` made of them is a
complete (if slow) codec; `codec.py` walks the same objects to write the fast one. A type comes in
variants: `compact` from the first flexible version on (lengths are unsigned varints, plus one),
`nullable` where null is permitted. The plain object stands in declarations, and
`schema.struct_of` picks the variant for a version.

Every type knows `least_size`, the fewest bytes it takes, and `objects`, how many Python objects a
value costs: an array is refused before anything is made when the bytes left, or the object budget
of the message, cannot hold its claimed count.
"""

# construct's hooks have underscored names and a fixed signature:
# ruff: noqa: ARG002, SLF001

from __future__ import annotations

import uuid
from typing import Any, Self, cast

from construct import Construct, FormatField, stream_read, stream_size, stream_write

from protocol.errors import DecodeError
from protocol.text import AS_JAVA, MAX_STRING_BYTES
from protocol.wire import object_budget, uvarint

Int8 = FormatField(">", "b")
Int16 = FormatField(">", "h")
Int32 = FormatField(">", "l")
Int64 = FormatField(">", "q")
UInt16 = FormatField(">", "H")
Float64 = FormatField(">", "d")
Boolean = FormatField(">", "?")


def least_size(wire: Construct) -> int:
    """Return the fewest bytes a value can take on the wire."""
    size = wire.length if isinstance(wire, FormatField) else wire.least_size
    return cast("int", size)


def objects(wire: Construct) -> int:
    """Return how many Python objects a value costs at least; numbers count in their struct."""
    return 0 if isinstance(wire, FormatField) else cast("int", wire.objects)


def spend(stream: Any, context: Any, count: int) -> None:
    """Take from the object budget of the message that is being parsed; DecodeError when over."""
    left = context._params.get("objects_left")
    if left is None:
        left = object_budget(stream_size(stream))
    left -= count
    if left < 0:
        raise DecodeError("more objects than a message of this size may hold")
    context._params["objects_left"] = left


def read_varint(stream: Any, path: str) -> int:
    """Read an unsigned varint of at most 32 bits from a stream. Raises DecodeError."""
    value = 0
    for shift in range(0, 35, 7):
        byte: int = stream_read(stream, 1, path)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value
    raise DecodeError(f"{path}: a variable-length integer has more than 32 bits")


class Wire(Construct):  # type: ignore[misc]
    """Base of our types: a name in error texts, a size and a cost."""

    label = ""
    least_size = 1
    objects = 1

    def _sizeof(self, context: Any, path: str) -> int:
        return self.least_size


class UuidType(Wire):
    """16 bytes; the zero UUID stands for "none"."""

    least_size = 16

    def _parse(self, stream: Any, context: Any, path: str) -> uuid.UUID:
        return uuid.UUID(bytes=stream_read(stream, 16, path))

    def _build(self, obj: uuid.UUID, stream: Any, context: Any, path: str) -> uuid.UUID:
        stream_write(stream, obj.bytes, 16, path)
        return obj


class Prefixed(Wire):
    """Anything behind a length: `prefix` is its struct code before flexible versions."""

    prefix = "l"

    def __init__(self, *, compact: bool = False, nullable: bool = False) -> None:
        super().__init__()
        self.compact = compact
        self.nullable = nullable
        self.fixed_prefix = FormatField(">", self.prefix)
        self.least_size = 1 if compact else cast("int", self.fixed_prefix.length)

    def variant(self, *, compact: bool, nullable: bool) -> Self:
        """Return this type as it is in a given version."""
        return type(self)(compact=compact, nullable=nullable)

    def read_length(self, stream: Any, context: Any, path: str) -> int | None:
        """Read the length; None is null. Raises DecodeError."""
        if self.compact:
            length = read_varint(stream, path) - 1
        else:
            length = self.fixed_prefix._parse(stream, context, path)
        if length >= 0:
            return length
        if length < -1 or not self.nullable:
            raise DecodeError(f"{path}: a length of {length}")
        return None

    def write_length(self, length: int, stream: Any, context: Any, path: str) -> None:
        """Write the length; -1 is null."""
        if self.compact:
            prefix = uvarint(length + 1)
            stream_write(stream, prefix, len(prefix), path)
        else:
            self.fixed_prefix._build(length, stream, context, path)


class BytesType(Prefixed):
    """A length and that many bytes."""

    def from_bytes(self, data: bytes, path: str) -> Any:
        """Turn what was read into the value."""
        return data

    def to_bytes(self, obj: Any) -> bytes:
        """Turn the value into what is written."""
        return bytes(obj)

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        length = self.read_length(stream, context, path)
        return None if length is None else self.from_bytes(stream_read(stream, length, path), path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        data = None if obj is None else self.to_bytes(obj)
        self.write_length(-1 if data is None else len(data), stream, context, path)
        if data:
            stream_write(stream, data, len(data), path)
        return obj


class RecordsType(BytesType):
    """Record batches: a view of the frame when read, any sized thing when written."""

    objects = 4  # a memoryview is as heavy as four small objects

    def from_bytes(self, data: bytes, path: str) -> Any:
        """Give a view, as the generated reader does."""
        return memoryview(data)


class StringType(BytesType):
    """UTF-8 behind its length in bytes: at most MAX_STRING_BYTES in every version, as in Kafka."""

    prefix = "h"

    def from_bytes(self, data: bytes, path: str) -> str:
        """Decode as `protocol.text` does, refusing what is too long. Raises DecodeError."""
        if len(data) > MAX_STRING_BYTES:
            raise DecodeError(f"{path}: a string of more than {MAX_STRING_BYTES} bytes")
        try:
            return data.decode(errors=AS_JAVA)
        except UnicodeDecodeError as error:
            raise DecodeError(f"{path}: {error}") from None

    def to_bytes(self, obj: str) -> bytes:
        """Encode."""
        return obj.encode()


class Array(Prefixed):
    """A count and that many elements, each a construct type or a message class."""

    def __init__(self, element: Any, *, compact: bool = False, nullable: bool = False) -> None:
        super().__init__(compact=compact, nullable=nullable)
        self.element = element

    def of(self, element: Any, *, compact: bool, nullable: bool) -> Self:
        """Return this type as it is in a given version, its element resolved for it."""
        return type(self)(element, compact=compact, nullable=nullable)

    @property
    def element_objects(self) -> int:
        """Cost of one element in the object budget."""
        return max(1, objects(self.element))

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        count = self.read_length(stream, context, path)
        if count is None:
            return None
        if count > (stream_size(stream) - stream.tell()) // least_size(self.element):
            raise DecodeError(f"{path}: {count} elements claimed, more than the bytes left")
        spend(stream, context, count * self.element_objects)
        return [self.element._parse(stream, context, path) for _ in range(count)]

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        self.write_length(-1 if obj is None else len(obj), stream, context, path)
        for element in obj or ():
            self.element._build(element, stream, context, path)
        return obj


class PackedArray(Array):
    """An array whose value may have the bytes of all its elements ready.

    A value that is no list is asked for `packed(compact)`; where that gives None, and in the
    interpreted codec, its elements are taken one by one.
    """


Uuid = UuidType()
String = StringType()
Bytes = BytesType()
Records = RecordsType()
