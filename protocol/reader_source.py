"""Writes the flat Python source that reads one message in one version, from its Struct.

Runs of fixed-width fields, together with the length prefix of the variable field behind them, are
read by one precompiled `struct.Struct`; nested arrays are loops without a call per element; the one
byte case of every compact length is inline. Each slice is checked against the end of the frame,
each count against the bytes left and the object budget, before anything is made.
"""

from __future__ import annotations

from struct import Struct as Packer
from struct import error as StructError  # noqa: N812
from typing import Any

from construct import Construct, FormatField

from protocol.errors import DecodeError
from protocol.structs import MessageStruct, NullableStruct, TagSection
from protocol.text import AS_JAVA, MAX_STRING_BYTES
from protocol.types import (
    Array,
    Prefixed,
    RecordsType,
    StringType,
    UuidType,
    least_size,
)
from protocol.wire import (
    BYTES_PER_OBJECT,
    FREE_OBJECTS,
    MAX_OBJECTS,
    TAG_COST,
    read_tag_count,
    read_uvarint,
    skip_tags,
    to_uuid,
)

# A small message is read from a copy in `bytes`: slices of it are cheaper than those of a view.
COPIED_BYTES = 65536
LONG = f"a string of more than {MAX_STRING_BYTES} bytes"
SHORT = "if {stop} > end: raise DecodeError('{name}: truncated', at)"


class ReaderSource:
    """The source being written, and the names it refers to."""

    def __init__(self, struct: MessageStruct, *, exact: bool = True) -> None:
        """`exact`: bytes after the message are an error, otherwise they are left alone."""
        self.struct = struct
        self.exact = exact
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "new": object.__new__,
            "DecodeError": DecodeError,
            "failures": (StructError, IndexError, UnicodeDecodeError),
            "long": read_uvarint,
            "skip_tags": skip_tags,
            "tag_count": read_tag_count,
            "to_uuid": to_uuid,
        }
        self.functions: list[list[str]] = []
        self.run: list[tuple[str, str]] = []
        self.after: list[str] = []
        self.depth = 0
        self.indent = 1
        self.viewed = False

    def source(self) -> str:
        """Write the whole module: `read(data, at)` and the readers of known tags."""
        self.indent = 2
        self.emit(
            f"end = len(data); budget = end // {BYTES_PER_OBJECT} + {FREE_OBJECTS}",
            f"if budget > {MAX_OBJECTS}: budget = {MAX_OBJECTS}",
        )
        self.read_struct(self.struct, "o0")
        self.flush()
        name = self.struct.cls.__name__
        head = ["def read(data, at):", "    try:"]
        if not self.viewed:
            head.append(f"        if len(data) < {COPIED_BYTES}: data = bytes(data)")
        tail = [
            "    except failures as error:",
            f"        raise DecodeError(f'{name}: {{error}}', -1) from None",
            f"    if at {'!=' if self.exact else '>'} end:",
            f"        raise DecodeError(f'{name}: {{end - at}} bytes too many', at)",
            "    return o0",
        ]
        return "\n".join(
            line for function in (*self.functions, head, self.lines, tail) for line in function
        )

    def emit(self, *lines: str) -> None:
        """Add lines at the present indentation."""
        self.lines.extend("    " * self.indent + line for line in lines)

    def bind(self, value: object, prefix: str) -> str:
        """Give an object a name in the generated module."""
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def flush(self) -> None:
        """Write the pending run of fixed-width reads."""
        if not self.run:
            return
        codes = "".join(code for code, _ in self.run)
        targets = ", ".join(target for _, target in self.run)
        if codes == "B":
            self.emit(f"{targets} = data[at]; at += 1")
        else:
            packer = Packer(">" + codes)
            comma = "," if len(self.run) == 1 else ""
            unpack = self.bind(packer.unpack_from, "unpack")
            self.emit(f"{targets}{comma} = {unpack}(data, at); at += {packer.size}")
        self.run.clear()
        self.emit(*self.after)
        self.after.clear()

    def read_struct(self, struct: MessageStruct, target: str) -> None:
        """Read every field of a struct into a new object."""
        cls = self.bind(struct.cls, "Class")
        self.emit(f"{target} = new({cls})")
        present = {field.name for field in struct.subcons}
        for name, spec in struct.cls.__fields__.items():
            if name not in present:
                value = "[]" if spec.makes_list else self.bind(spec.default, "default")
                self.emit(f"{target}.{name} = {value}")
        for field in struct.subcons:
            if isinstance(field.subcon, TagSection):
                self.read_tags(field.subcon, target)
            else:
                self.read_field(field.subcon, f"{target}.{field.name}", field.name)

    def read_field(self, wire: Construct, target: str, name: str) -> None:
        """Read one value into `target`."""
        match wire:
            case FormatField():
                self.run.append((wire.fmtstr[1:], target))
            case UuidType():
                raw = f"raw{len(self.run)}"
                self.run.append(("16s", raw))
                self.after.append(f"{target} = to_uuid({raw})")
            case Array():
                self.read_array(wire, target, name)
            case Prefixed():
                self.read_bytes(wire, target, name)
            case NullableStruct():
                self.read_nullable_struct(wire, target, name)
            case MessageStruct():
                self.depth += 1
                inner = f"o{self.depth}"
                self.flush()
                self.read_struct(wire, inner)
                self.flush()
                self.emit(f"{target} = {inner}")
                self.depth -= 1
            case _:
                raise TypeError(f"{name}: no reader for {wire!r}")

    def read_prefix(self, wire: Prefixed, target: str, name: str) -> None:
        """Read a length into `n`, settle null, and leave the indentation inside "not null"."""
        if wire.compact:
            self.run.append(("B", "n"))
            self.flush()
            self.emit("if n > 127: n, at = long(data, at - 1)")
            is_null, refused = "n == 0", "n == 0"
        else:
            self.run.append((wire.prefix, "n"))
            self.flush()
            is_null, refused = "n == -1", "n < 0"
        if wire.nullable:
            self.emit(f"if {is_null}: {target} = None", "else:")
            self.indent += 1
            refused = "" if wire.compact else refused
        if refused:
            self.emit(f"if {refused}: raise DecodeError('{name}: a length below 0', at)")

    def read_bytes(self, wire: Prefixed, target: str, name: str) -> None:
        """Read a string, bytes or records."""
        self.read_prefix(wire, target, name)
        if isinstance(wire, StringType) and wire.compact:
            self.emit(f"if n > {MAX_STRING_BYTES + 1}: raise DecodeError('{name}: {LONG}', at)")
        self.emit(f"stop = at + n{' - 1' * wire.compact}", SHORT.format(stop="stop", name=name))
        if isinstance(wire, StringType):
            value = f"str(data[at:stop], 'utf-8', '{AS_JAVA}')"
        elif isinstance(wire, RecordsType):
            self.viewed = True
            value = "data[at:stop]"
        else:
            value = "bytes(data[at:stop])"
        self.emit(f"{target} = {value}; at = stop")
        self.indent -= wire.nullable

    def read_array(self, wire: Array, target: str, name: str) -> None:
        """Read an array as a loop, after its count was found possible."""
        self.read_prefix(wire, target, name)
        self.depth += 1
        element, items = wire.element, f"l{self.depth}"
        if wire.compact:
            self.emit("n -= 1")
        self.emit(
            f"if n > (end - at) // {least_size(element)}:"
            f" raise DecodeError(f'{name}: {{n}} elements claimed, more than the bytes left', at)",
            f"budget -= n * {wire.element_objects}",
            f"if budget < 0: raise DecodeError('{name}: too many objects for the size', at)",
        )
        if isinstance(element, FormatField):
            unpack = self.bind(Packer(element.fmtstr).iter_unpack, "iterate")
            self.emit(
                f"stop = at + n * {element.length}",
                f"{target} = [x for x, in {unpack}(data[at:stop])]; at = stop",
            )
        else:
            self.emit(f"{target} = {items} = []", "for _ in range(n):")
            self.indent += 1
            self.read_element(element, items, name)
            self.indent -= 1
        self.depth -= 1
        self.indent -= wire.nullable

    def read_element(self, element: Construct, items: str, name: str) -> None:
        """Read one element of an array and put it there."""
        inner = f"o{self.depth}"
        if isinstance(element, MessageStruct):
            self.read_struct(element, inner)
        else:
            self.read_field(element, inner, name)
        self.flush()
        self.emit(f"{items}.append({inner})")

    def read_nullable_struct(self, wire: NullableStruct, target: str, name: str) -> None:
        """Read a struct behind its presence byte."""
        self.run.append(("b", "n"))
        self.flush()
        self.emit(f"if n == -1: {target} = None", "elif n == 1:")
        self.indent += 1
        self.read_field(wire.struct, target, name)
        self.indent -= 1
        self.emit(f"else: raise DecodeError('{name}: neither null nor a struct', at)")

    def read_tags(self, section: TagSection, target: str) -> None:
        """Read the end of a struct; the usual empty section is one byte of the run before it."""
        self.run.append(("B", "t"))
        self.flush()
        if not section.tags:
            self.emit("if t: at, budget = skip_tags(data, at, t, budget)")
            return
        self.emit(
            f"if t: at, budget = {self.tag_function(section)}(data, at, end, t, budget, {target})"
        )

    def tag_function(self, section: TagSection) -> str:
        """Write the function that reads a section with known tags into an object."""
        name = f"tags{len(self.functions)}"
        self.functions.append([])
        outer, self.lines, indent, self.indent = self.lines, [], self.indent, 1
        self.emit("n, at = tag_count(data, at, t)", "for _ in range(n):")
        self.indent += 1
        self.emit(
            "tag, at = long(data, at); n, at = long(data, at); last = at + n",
            SHORT.format(stop="last", name="a tagged field"),
        )
        word = "if"
        for number, tag in section.tags.items():
            self.emit(f"{word} tag == {number}:")
            self.indent += 1
            self.read_field(tag.wire, f"o.{tag.name}", tag.name)
            self.flush()
            self.emit(f"if at != last: raise DecodeError('{tag.name}: not of its size', at)")
            self.indent -= 1
            word = "elif"
        self.emit("else:")
        self.indent += 1
        self.emit(
            f"budget -= {TAG_COST}; at = last",
            "if budget < 0: raise DecodeError('too many tagged fields for the size', at)",
        )
        self.indent = 1
        self.emit("return at, budget")
        self.functions[int(name[4:])] = [
            f"def {name}(data, at, end, t, budget, o):",
            *self.lines,
        ]
        self.lines, self.indent = outer, indent
        return name
