"""Requests of any API and version from a seed: each field drawn, most of them pointed at something.

The same values as `message_strategies` draws, without a search: a sequence is identified by its
seed.
"""

import random
from typing import Any
from uuid import UUID

from construct import Construct, FormatField

from protocol.schema import struct_of
from protocol.structs import MessageStruct, NullableStruct, TagSection
from protocol.types import Array, BytesType, StringType, UuidType
from tests.support.clients.served_apis import served_apis

BITS = {">b": 8, ">h": 16, ">l": 32, ">q": 64}
TEXTS = (
    "",
    "a",
    "é" * 50,
    "..",
    "a/b",
    "x\n",
    "b" * 127,
    "é" * 8192,
    "c" * 32_767,
    "d" * 40_000,
    "{}",
    "%00",
)
PAYLOADS = (b"", b"\0", b"\xff" * 9, b"y" * 127, b"z" * 16384)
COMMON = (-1, 0, 1, 2, 3, 100)


def random_request(dice: random.Random) -> tuple[Any, Any, int]:
    """API, request, version."""
    api = dice.choice(list(served_apis().values()))
    version = dice.randint(api.min_version, api.max_version)
    return api, _struct(struct_of(api.request, version), dice), version


def _struct(struct: MessageStruct, dice: random.Random) -> Any:
    fields = {}
    for part in struct.subcons:
        if not isinstance(part.subcon, TagSection):
            fields[part.name] = _value(part.subcon, dice)
            continue
        for tag in part.subcon.tags.values():
            if dice.random() < 0.3:
                fields[tag.name] = _value(tag.wire, dice)
    return struct.cls(**fields)


def _value(wire: Construct, dice: random.Random) -> Any:
    if getattr(wire, "nullable", False) and dice.random() < 0.1:
        return None
    match wire:
        case FormatField():
            return _number(wire.fmtstr, dice)
        case UuidType():
            return UUID(int=dice.choice((0, 1, dice.getrandbits(128))))
        case Array():
            some = [_value(wire.element, dice) for _ in range(dice.choice((0, 1, 1, 2, 3)))]
            return some * _times(wire.element, dice)
        case StringType():
            return dice.choice(TEXTS)
        case BytesType():
            return dice.choice((*PAYLOADS, dice.randbytes(40)))
        case NullableStruct():
            return None if dice.random() < 0.3 else _struct(wire.struct, dice)
        case MessageStruct():
            return _struct(wire, dice)
    raise TypeError(wire)


def _times(element: Construct, dice: random.Random) -> int:
    """Number of repetitions in a list: mostly one; names, ids and numbers very many, too."""
    many = 3 if isinstance(element, Array | MessageStruct | NullableStruct) else 1000
    return many if dice.random() < 0.05 else 1


def _number(kind: str, dice: random.Random) -> Any:
    if kind == ">?":
        return dice.random() < 0.5
    if kind == ">d":
        return dice.choice((0.0, -1.0, 1e-300, float("inf"), dice.random() * 1e9))
    if kind == ">H":
        return dice.choice((0, 1, 65_535, dice.randrange(65_536)))
    top = 1 << BITS[kind] - 1
    return dice.choice((*COMMON, top - 1, top - 2, -top, dice.randrange(-top, top)))
