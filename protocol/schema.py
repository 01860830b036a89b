"""The declaration language of messages: typed classes whose fields carry construct types.

    @message(flexible_from=6)
    class ListOffsetsRequest:
        replica_id: int = field(Int32, default=-1)
        topics: list[ListOffsetsTopic] = field(Array(ListOffsetsTopic))
        timeout_ms: int = field(Int32, since=10)

Fields stand in wire order. Each says which versions have it; one that a version lacks is ignored
when written and gets its default when read. The class has slots, a keyword constructor in which
everything has a default, `repr` and `==`. `struct_of` turns it into the `construct.Struct` of one
version, on demand. Messages are mutable and belong to their maker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, dataclass_transform, overload

from construct import Construct

from protocol.structs import MessageStruct, NullableStruct, Tag, TagSection
from protocol.types import (
    Array,
    Boolean,
    BytesType,
    Float64,
    Prefixed,
    RecordsType,
    StringType,
    UuidType,
)
from protocol.wire import ZERO_UUID

T = TypeVar("T")
NEVER = 0x7FFF  # a version that never comes
UNSET: Any = object()


class Field:
    """One field of a message: its type, the versions that have it, its default."""

    __slots__ = ("default", "doc", "nullable_from", "since", "tag", "until", "wire")

    def __init__(
        self,
        wire: Any,
        *,
        since: int,
        until: int,
        nullable_from: int,
        tag: int | None,
        default: Any,
        doc: str,
    ) -> None:
        self.wire = wire
        self.since = since
        self.until = until
        self.nullable_from = nullable_from
        self.tag = tag
        self.default = natural_default(wire, nullable_from) if default is UNSET else default
        self.doc = doc

    @property
    def makes_list(self) -> bool:
        """True when the default is a fresh, empty list."""
        return self.default is UNSET

    def fresh_default(self) -> Any:
        """Return the default: a list of its own where it is one."""
        return [] if self.default is UNSET else self.default


def natural_default(wire: Any, nullable_from: int) -> Any:
    """Return the default of a field that states none; UNSET stands for an empty list."""
    if nullable_from == 0 or isinstance(wire, type | RecordsType):
        return None
    if isinstance(wire, Array):
        return UNSET
    if isinstance(wire, StringType):
        return ""
    if isinstance(wire, BytesType):
        return b""
    if isinstance(wire, UuidType):
        return ZERO_UUID
    return False if wire is Boolean else 0.0 if wire is Float64 else 0


def field(
    wire: Any,
    *,
    since: int = 0,
    until: int = NEVER,
    nullable: bool | int = False,
    tag: int | None = None,
    default: Any = UNSET,
    doc: str = "",
) -> Any:
    """Declare a field: versions `since` to `until`, both included.

    `nullable` is True, or the first version in which null is permitted. A tagged field holding its
    default, or None, is left out. Without `default` a field is zero, empty or, where every version
    permits null, None.
    """
    nullable_from = (0 if nullable else NEVER) if isinstance(nullable, bool) else nullable
    return Field(
        wire,
        since=since,
        until=until,
        nullable_from=nullable_from,
        tag=tag,
        default=default,
        doc=doc,
    )


class Message:
    """Base of every message class: construction by keyword, `repr`, `==`."""

    __slots__ = ()
    __fields__: ClassVar[dict[str, Field]] = {}
    __flexible_from__: ClassVar[int | None] = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, **values: Any) -> None:
        """Take the place of the real constructor until the class is first used."""
        install_constructor(type(self))
        type(self).__init__(self, **values)

    def __repr__(self) -> str:
        """Show the fields that differ from their defaults."""
        shown = (
            f"{name}={getattr(self, name)!r}"
            for name, spec in self.__fields__.items()
            if getattr(self, name) != spec.fresh_default()
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        """Compare class and every field."""
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__fields__)


def install_constructor(cls: type[Message]) -> None:
    """Write the constructor of a class as flat code; import time is not spent on it."""
    names: dict[str, Any] = {"UNSET": UNSET}
    arguments, body = [], []
    for name, spec in cls.__fields__.items():
        names[f"default_{name}"] = spec.default
        arguments.append(f"{name}=default_{name}")
        value = f"[] if {name} is UNSET else {name}" if spec.makes_list else name
        body.append(f"    self.{name} = {value}\n")
    star = "*, " if arguments else ""
    source = f"def __init__(self, {star}{', '.join(arguments)}):\n{''.join(body) or '    pass'}"
    exec(compile(source, f"<constructor of {cls.__qualname__}>", "exec"), names)  # noqa: S102
    cls.__init__ = names["__init__"]  # type: ignore[method-assign]


def make_message(cls: type[T], flexible_from: int | None) -> type[T]:
    """Build the slotted class that a declaration stands for."""
    namespace = dict(vars(cls))
    fields = {name: spec for name, spec in namespace.items() if isinstance(spec, Field)}
    for name in (*fields, "__dict__", "__weakref__"):
        namespace.pop(name, None)
    namespace["__slots__"] = tuple(fields)
    namespace["__fields__"] = fields
    namespace["__flexible_from__"] = flexible_from
    return type(cls.__name__, (Message,), namespace)


@overload
@dataclass_transform(kw_only_default=True)
def message(cls: type[T], /) -> type[T]: ...


@overload
@dataclass_transform(kw_only_default=True)
def message(*, flexible_from: int | None) -> Callable[[type[T]], type[T]]: ...


def message(cls: type[T] | None = None, /, *, flexible_from: int | None = NEVER) -> Any:
    """Declare a message or a struct in one.

    `flexible_from` belongs to whole messages: the first version with compact lengths and tagged
    fields, or None when there is no such version. A struct in a message follows the message.
    """
    if cls is not None:
        return make_message(cls, None)
    return lambda declared: make_message(
        declared, NEVER if flexible_from is None else flexible_from
    )


def struct_of(cls: Any, version: int) -> MessageStruct:
    """Return the Struct of a whole message in a version; it is the schema.

    Raises TypeError for a class that is only a part of messages.
    """
    if cls.__flexible_from__ is None:
        raise TypeError(f"{cls.__name__} is a part of a message, not a message")
    return part_of(cls, version, flexible=version >= cls.__flexible_from__)


def part_of(cls: Any, version: int, *, flexible: bool) -> MessageStruct:
    """Return the Struct of a class within a message."""
    plain, tags = [], {}
    for name, spec in cls.__fields__.items():
        if not spec.since <= version <= spec.until:
            continue
        wire = resolve(spec, version, flexible=flexible)
        if spec.tag is None:
            plain.append(name / wire)
        else:
            tags[spec.tag] = Tag(name, wire, tag_default(spec))
    return MessageStruct(cls, plain, TagSection(dict(sorted(tags.items()))) if flexible else None)


def tag_default(spec: Field) -> Any:
    """Return the value at which a tagged field is left out."""
    return spec.wire() if isinstance(spec.wire, type) else spec.fresh_default()


def resolve(spec: Field, version: int, *, flexible: bool) -> Construct:
    """Return the variant of a field's type that a version has."""
    wire, nullable = spec.wire, version >= spec.nullable_from
    if isinstance(wire, Array):
        element = resolve_element(wire.element, version, flexible=flexible)
        return wire.of(element, compact=flexible, nullable=nullable)
    if isinstance(wire, type):
        struct = part_of(wire, version, flexible=flexible)
        return NullableStruct(struct) if nullable else struct
    return wire.variant(compact=flexible, nullable=nullable) if isinstance(wire, Prefixed) else wire


def resolve_element(element: Any, version: int, *, flexible: bool) -> Construct:
    """Return the variant of an array's element; elements are never null."""
    if isinstance(element, type):
        return part_of(element, version, flexible=flexible)
    if isinstance(element, Prefixed):
        return element.variant(compact=flexible, nullable=False)
    return element
