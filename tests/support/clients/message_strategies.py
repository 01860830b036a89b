"""Hypothesis strategies for every message in every version, derived from the schema itself."""

from typing import Any
from uuid import UUID

from construct import Construct, FormatField
from hypothesis import strategies as st

from protocol.api import Api
from protocol.errors import ErrorCode
from protocol.registry import apis
from protocol.schema import struct_of
from protocol.structs import MessageStruct, NullableStruct, TagSection
from protocol.types import (
    Array,
    BytesType,
    Prefixed,
    StringType,
    UuidType,
)

NUMBERS = {
    ">b": st.integers(-(2**7), 2**7 - 1),
    ">h": st.integers(-(2**15), 2**15 - 1),
    ">H": st.integers(0, 2**16 - 1),
    ">l": st.integers(-(2**31), 2**31 - 1),
    ">q": st.integers(-(2**63), 2**63 - 1),
    ">d": st.floats(allow_nan=False),
    ">?": st.booleans(),
}
ERROR_CODES = st.sampled_from([int(code) for code in ErrorCode])
# Past 127 bytes a compact length takes two bytes, past 16,383 three.
TEXTS = st.one_of(st.text(max_size=6), st.sampled_from(["a" * 126, "b" * 127, "é" * 8192]))
PAYLOADS = st.one_of(st.binary(max_size=8), st.sampled_from([b"x" * 126, b"y" * 127, b"z" * 16384]))

Whole = tuple[Api, type[Any], int]


def every_message() -> list[Whole]:
    """Every API, direction and version."""
    return [
        (api, cls, version)
        for api in apis().values()
        for version in range(api.min_version, api.max_version + 1)
        for cls in (api.request, api.response)
    ]


def every_struct() -> list[Whole]:
    """One case of `every_message` for each Struct of a class, and some that must never be left out.

    Those are the first, the last and the first flexible version. The codec sees the Struct alone,
    so versions with equal ones are read and written by the same code.
    """
    seen = set()
    chosen = []
    for whole in every_message():
        api, cls, version = whole
        shape = shape_of(struct_of(cls, version))
        always = {api.min_version, api.max_version, cls.__flexible_from__}
        if version in always or shape not in seen:
            chosen.append(whole)
        seen.add(shape)
    return chosen


def shape_of(wire: Any) -> tuple[Any, ...]:
    """All by which one type differs from another, down to the numbers in it."""
    match wire:
        case MessageStruct():
            fields = [(field.name, shape_of(field.subcon)) for field in wire.subcons]
            return (wire.cls, *fields)
        case TagSection():
            tags = wire.tags.items()
            return tuple((n, tag.name, repr(tag.default), shape_of(tag.wire)) for n, tag in tags)
        case NullableStruct():
            return ("nullable", shape_of(wire.struct))
        case Array():
            return (type(wire), wire.compact, wire.nullable, shape_of(wire.element))
        case Prefixed():
            return (type(wire), wire.compact, wire.nullable)
        case FormatField():
            return (wire.fmtstr,)
        case UuidType():
            return (UuidType,)
    raise TypeError(wire)


def name_of(whole: Whole) -> str:
    """Name of a parametrised test."""
    return f"{whole[1].__name__}-{whole[2]}"


def messages(cls: type[Any], version: int) -> st.SearchStrategy[Any]:
    """Values of one message that a version can carry."""
    return of_struct(struct_of(cls, version))


def of_struct(struct: MessageStruct) -> st.SearchStrategy[Any]:
    """Values of a struct: its fields, and each of its tagged fields or its absence."""
    fields = {}
    for field in struct.subcons:
        if isinstance(field.subcon, TagSection):
            for tag in field.subcon.tags.values():
                fields[tag.name] = st.just(usual(tag)) | of_wire(tag.wire, tag.name)
        else:
            fields[field.name] = of_wire(field.subcon, field.name)
    return st.builds(struct.cls, **fields).map(without_spelled_out_defaults)


def usual(tag: Any) -> Any:
    """Value of a tagged field that is absent."""
    return None if isinstance(tag.wire, MessageStruct) else tag.default


def without_spelled_out_defaults(message: Any) -> Any:
    """A tagged struct that holds its defaults is not sent, so it reads as None."""
    for name, spec in message.__fields__.items():
        if spec.tag is not None and isinstance(spec.wire, type):
            value = getattr(message, name)
            if value is not None and value == spec.wire():
                setattr(message, name, None)
    return message


def of_wire(wire: Construct, name: str) -> st.SearchStrategy[Any]:
    """Values of one type."""
    strategy: st.SearchStrategy[Any]
    match wire:
        case FormatField():
            strategy = ERROR_CODES if name.endswith("error_code") else NUMBERS[wire.fmtstr]
        case UuidType():
            strategy = st.just(UUID(int=0)) | st.uuids()
        case Array():
            strategy = st.lists(of_wire(wire.element, ""), max_size=3)
        case StringType():
            strategy = TEXTS
        case BytesType():
            strategy = PAYLOADS
        case NullableStruct():
            return st.none() | of_struct(wire.struct)
        case MessageStruct():
            strategy = of_struct(wire)
        case _:
            raise TypeError(wire)
    return st.none() | strategy if getattr(wire, "nullable", False) else strategy
