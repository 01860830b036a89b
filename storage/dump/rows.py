"""Rows of a dump in the order of the file, and the places where it is damaged.

A row's fields carry the names that Kafka's DumpLogSegments prints, in its order (semantics.md 12).
The printer turns them into text or JSON.
"""

from typing import NamedTuple, TypeAlias

from protocol.records.batch import LOG_APPEND_TIME
from protocol.records.record import Header


class Stamp(NamedTuple):
    """A time with its type: `CreateTime`, `LogAppendTime` or `NoTimestampType`."""

    type: str
    ms: int


class Headers(NamedTuple):
    """The headers of a record with their values."""

    pairs: tuple[Header, ...]


Value: TypeAlias = int | bool | str | bytes | Stamp | list[str] | Headers | None


class Row(NamedTuple):
    """One line of a dump."""

    kind: str
    """`start`, `batch`, `record`, `tail`, `empty`, or what kind of entry it is."""
    fields: dict[str, Value]


class Damage(NamedTuple):
    """Position of wrong bytes, with the reason."""

    position: int
    why: str


Dumped: TypeAlias = Row | Damage


def stamp(attributes: int, magic: int, ms: int) -> Stamp:
    """The time of a batch or record with the type that its attributes name."""
    if magic == 0:
        return Stamp("NoTimestampType", ms)
    return Stamp("LogAppendTime" if attributes & LOG_APPEND_TIME else "CreateTime", ms)
