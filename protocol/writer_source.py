"""Writes the flat Python source that encodes one message in one version, from its Struct.

Runs of fixed-width fields, together with the length prefix of the variable field behind them, are
packed by one precompiled `struct.Struct`; small pieces are joined; a payload of records stays a
part of its own and is never looked into beyond its length.
"""

from __future__ import annotations

import struct
from struct import Struct as Packer
from typing import Any

from construct import Construct, FormatField

from protocol.structs import MessageStruct, NullableStruct, Tag, TagSection
from protocol.types import (
    Array,
    PackedArray,
    Prefixed,
    RecordsType,
    StringType,
    UuidType,
)
from protocol.wire import ONE_BYTE, uvarint


class WriterSource:
    """The source being written, and the names it refers to."""

    def __init__(self, message: MessageStruct) -> None:
        self.message = message
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.names: dict[str, Any] = {"uvarint": uvarint, "one": ONE_BYTE, "pack": struct.pack}
        self.run: list[tuple[str, str]] = []
        self.depth = 0
        self.indent = 1
        self.parted = False

    def source(self) -> str:
        """Write the whole module: `write(message)` and the writers of known tags."""
        self.emit("out = []; add = out.append; parts = []")
        self.write_struct(self.message, "o0")
        self.flush()
        if self.parted:
            self.emit("if out: parts.append(b''.join(out))", "return parts")
        else:
            self.emit("return [b''.join(out)]")
        return "\n".join([*self.functions, "def write(o0):", *self.lines])

    def emit(self, *lines: str) -> None:
        """Add lines at the present indentation."""
        self.lines.extend("    " * self.indent + line for line in lines)

    def bind(self, value: object, prefix: str) -> str:
        """Give an object a name in the generated module."""
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def packed(self, run: list[tuple[str, str]]) -> str:
        """Return the expression that packs a run."""
        if all(code == "x" for code, _ in run):
            return repr(bytes(len(run)))
        arguments = ", ".join(value for code, value in run if code != "x")
        packer = Packer(">" + "".join(code for code, _ in run))
        return f"{self.bind(packer.pack, 'pack')}({arguments})"

    def flush(self) -> None:
        """Write the pending run."""
        if self.run:
            self.emit(f"add({self.packed(self.run)})")
            self.run = []

    def write_struct(self, message: MessageStruct, source: str) -> None:
        """Write every field of a struct."""
        for field in message.subcons:
            if isinstance(field.subcon, TagSection):
                self.write_tags(field.subcon, source)
            else:
                self.write_field(field.subcon, f"{source}.{field.name}")

    def write_field(self, wire: Construct, source: str) -> None:
        """Write one value."""
        match wire:
            case FormatField():
                self.run.append((wire.fmtstr[1:], source))
            case UuidType():
                self.run.append(("16s", f"{source}.bytes"))
            case Array():
                self.write_array(wire, source)
            case Prefixed():
                self.write_bytes(wire, source)
            case NullableStruct():
                self.write_nullable_struct(wire, source)
            case MessageStruct():
                self.write_struct(wire, source)
            case _:
                raise TypeError(f"{source}: no writer for {wire!r}")

    def write_prefix(self, wire: Prefixed) -> None:
        """Write the length `n`; -1 is null."""
        if not wire.compact:
            self.run.append((wire.prefix, "n"))
            self.flush()
            return
        long = [*self.run, ("", "uvarint(n + 1)")]
        self.emit("if n < 127:")
        self.indent += 1
        if self.run:
            self.emit(f"add({self.packed([*self.run, ('B', 'n + 1')])})")
        else:
            self.emit("add(one[n + 1])")
        self.indent -= 1
        self.emit("else:")
        self.indent += 1
        if long[:-1]:
            self.emit(f"add({self.packed(long[:-1])})")
        self.emit(f"add({long[-1][1]})")
        self.indent -= 1
        self.run = []

    def write_bytes(self, wire: Prefixed, source: str) -> None:
        """Write a string, bytes or records."""
        value = f"{source}.encode()" if isinstance(wire, StringType) else source
        if wire.nullable:
            self.emit(f"s = {source}", "if s is None: n = -1", "else:")
            body = "s = s.encode(); n = len(s)" if isinstance(wire, StringType) else "n = len(s)"
            self.emit("    " + body)
        else:
            self.emit(f"s = {value}; n = len(s)")
        self.write_prefix(wire)
        if isinstance(wire, RecordsType):
            self.parted = True
            self.emit("if n > 0: parts.append(b''.join(out)); parts.append(s); out.clear()")
        else:
            self.emit("if n > 0: add(s)")

    def write_array(self, wire: Array, source: str) -> None:
        """Write a count and a loop."""
        self.depth += 1
        items, inner = f"l{self.depth}", f"o{self.depth}"
        self.emit(f"{items} = {source}")
        if wire.nullable:
            self.emit(f"if {items} is None: n = -1; {items} = ()", f"else: n = len({items})")
        else:
            self.emit(f"n = len({items})")
        self.write_prefix(wire)
        if isinstance(wire, PackedArray):
            self.emit(f"if {items} and type({items}) is not list:")
            self.emit(f"    p = {items}.packed(compact={wire.compact})")
            self.emit(f"    if p is not None: add(p); {items} = ()")
        if isinstance(wire.element, FormatField):
            code = wire.element.fmtstr[1:]
            self.emit(f"if {items}: add(pack(f'>{{n}}{code}', *{items}))")
        else:
            self.emit(f"for {inner} in {items}:")
            self.indent += 1
            self.write_field(wire.element, inner)
            self.flush()
            self.indent -= 1
        self.depth -= 1

    def write_nullable_struct(self, wire: NullableStruct, source: str) -> None:
        """Write a presence byte and the struct."""
        self.flush()
        self.depth += 1
        inner = f"o{self.depth}"
        self.emit(f"{inner} = {source}", f"if {inner} is None: add(b'\\xff')", "else:")
        self.indent += 1
        self.run.append(("b", "1"))
        self.write_struct(wire.struct, inner)
        self.flush()
        self.indent -= 1
        self.depth -= 1

    def write_tags(self, section: TagSection, source: str) -> None:
        """Write the end of a struct; without known tags it is a zero byte of the run."""
        if not section.tags:
            self.run.append(("x", ""))
            return
        self.flush()
        usual = " and ".join(self.is_usual(tag, source) for tag in section.tags.values())
        self.emit(f"add(b'\\0' if {usual} else {self.tag_function(section)}({source}))")

    def is_usual(self, tag: Tag, source: str) -> str:
        """Return a cheap test that a tagged field has its default."""
        if tag.default is None or isinstance(tag.wire, MessageStruct):
            return f"{source}.{tag.name} is None"
        if tag.default:
            return f"{source}.{tag.name} == {self.bind(tag.default, 'default')}"
        return f"not {source}.{tag.name}"

    def tag_function(self, section: TagSection) -> str:
        """Write the function that encodes a section with known tags."""
        name = self.bind(None, "tags")
        outer, self.lines, indent, self.indent = self.lines, [], self.indent, 1
        self.emit("count = 0; section = []")
        for number, tag in section.tags.items():
            default = self.bind(tag.default, "default")
            self.emit(f"v = o.{tag.name}", f"if v is not None and v != {default}:")
            self.indent += 1
            self.emit("count += 1; out = []; add = out.append")
            self.write_field(tag.wire, f"o.{tag.name}")
            self.flush()
            self.emit(
                "content = b''.join(out)",
                f"section += ({uvarint(number)!r}, uvarint(len(content)), content)",
            )
            self.indent -= 1
        self.emit("return uvarint(count) + b''.join(section)")
        self.functions += [f"def {name}(o):", *self.lines]
        self.lines, self.indent = outer, indent
        return name
