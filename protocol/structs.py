"""Structs: the construct objects that a message class becomes in one version.

A `MessageStruct` parses to, and builds from, its class; in flexible versions it ends with a
`TagSection`. `schema.struct_of` makes them.
"""

# construct's hooks have underscored names:
# ruff: noqa: SLF001

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

from construct import Construct, FormatField, Struct, stream_read, stream_write

from protocol.errors import DecodeError
from protocol.types import Int8, Wire, least_size, objects, read_varint, spend
from protocol.wire import MAX_TAGS, TAG_COST, uvarint


class NullableStruct(Wire):
    """A struct behind one byte: -1 for null, else 1."""

    def __init__(self, struct: MessageStruct) -> None:
        super().__init__()
        self.struct = struct
        self.objects = struct.objects

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        flag = Int8._parse(stream, context, path)
        if flag not in {-1, 1}:
            raise DecodeError(f"{path}: {flag} where 1 or -1 says whether a struct follows")
        return self.struct._parse(stream, context, path) if flag == 1 else None

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        Int8._build(-1 if obj is None else 1, stream, context, path)
        if obj is not None:
            self.struct._build(obj, stream, context, path)
        return obj


class Tag:
    """One tagged field that we know: left out when it has its default."""

    __slots__ = ("default", "name", "wire")

    def __init__(self, name: str, wire: Construct, default: object) -> None:
        self.name = name
        self.wire = wire
        self.default = default


class TagSection(Wire):
    """The end of a struct in flexible versions; unknown tags are stepped over."""

    objects = 0

    def __init__(self, tags: Mapping[int, Tag]) -> None:
        super().__init__()
        self.tags = tags

    def _parse(self, stream: Any, context: Any, path: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        count = read_varint(stream, path)
        if count > MAX_TAGS:
            raise DecodeError(f"{path}: {count} tagged fields in one struct")
        for _ in range(count):
            tag = self.tags.get(read_varint(stream, path))
            content = stream_read(stream, read_varint(stream, path), path)
            if tag is None:
                spend(stream, context, TAG_COST)
                continue
            part = io.BytesIO(content)
            values[tag.name] = tag.wire._parse(part, context, path)
            if part.read(1):
                raise DecodeError(f"{path}: tagged field {tag.name} is longer than its content")
        return values

    def _build(self, obj: Mapping[str, Any], stream: Any, context: Any, path: str) -> Any:
        present = [n for n, tag in self.tags.items() if obj[tag.name] not in (None, tag.default)]
        self.write(stream, uvarint(len(present)), path)
        for number in present:
            part = io.BytesIO()
            tag = self.tags[number]
            tag.wire._build(obj[tag.name], part, context, path)
            content = part.getvalue()
            self.write(stream, uvarint(number) + uvarint(len(content)) + content, path)
        return obj

    @staticmethod
    def write(stream: Any, data: bytes, path: str) -> None:
        """Write all of `data`."""
        stream_write(stream, data, len(data), path)


class MessageStruct(Struct):  # type: ignore[misc]
    """The Struct of one message class in one version: parses to, and builds from, that class.

    `absent` are the fields that this version does not have, which get their default.
    """

    def __init__(self, cls: Any, fields: Iterable[Any], tags: TagSection | None) -> None:
        super().__init__(*fields, *([] if tags is None else ["_tags" / tags]))
        self.cls = cls
        self.tags = tags
        inner = [field.subcon for field in self.subcons]
        self.least_size = sum(map(least_size, inner)) or 1
        numbers = sum(isinstance(wire, FormatField) for wire in inner)
        self.objects = 1 + sum(map(objects, inner)) + numbers // 2

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        values = super()._parse(stream, context, path)
        del values["_io"]
        values.update(values.pop("_tags", {}))
        return self.cls(**values)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        values = {field.name: getattr(obj, field.name, None) for field in self.subcons}
        if self.tags is not None:
            values["_tags"] = {t.name: getattr(obj, t.name) for t in self.tags.tags.values()}
        super()._build(values, stream, context, path)
        return obj
