"""Values of an archive: units of work, files that were written, sums.

Plain values that travel between processes. An archive has three tables: the records, by topic and
event date; the quarantine of those whose time cannot be believed; the dead letters, whose value
does not fit the schema that was asked for. Every record that was read is in one of them, once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import PipelineError
from pipeline.transforms.event_time import TimeLimits

# ruff: noqa: N818 - an error is named after what happened


class TableKind(StrEnum):
    """The tables of an archive, and the names of their folders."""

    RECORDS = "records"
    QUARANTINE = "quarantine"
    DEAD = "dead_letters"


class CountsDoNotClose(PipelineError):
    """Raised when the written records are not those read. Nothing was committed."""

    EXIT_STATUS = 3


class TableChanged(PipelineError):
    """Raised when another process changed the table in a way that cannot be joined with ours."""

    EXIT_STATUS = 3


class SchemaDiffers(PipelineError):
    """The archive has values of another schema than the one that was given."""

    EXIT_STATUS = 2


class Stream(NamedTuple):
    """One partition of one topic that was made once; a topic made again is another stream."""

    topic: str
    topic_id: str
    """As Kafka writes ids; empty where none is known."""
    partition: int

    @property
    def key(self) -> str:
        """Its name in manifests, transactions and snapshots."""
        return f"{self.topic}/{self.topic_id}/{self.partition}"

    @property
    def name(self) -> tuple[str, str, int]:
        """Key of the stream in its files' names: "0" stands for no id."""
        return self.topic, self.topic_id[:8] or "0", self.partition

    @classmethod
    def of_key(cls, key: str) -> "Stream":
        """The stream of a `key`; ValueError for any other text."""
        topic, topic_id, partition = key.split("/")
        return cls(topic, topic_id, int(partition))


Stored = NDArray[np.int64]
"""Offsets, in order."""


class TableStanding(NamedTuple):
    """Progress of an archive."""

    begins: Mapping[str, int]
    """By key of the stream: the offset to go on from."""
    stored: Mapping[str, Stored] = MappingProxyType({})
    """By key of the stream: offsets behind that one that a table has already."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Place and format of a worker's files."""

    root: str
    staged: bool
    """Into `_staging`, to be moved by the commit; else at once under the final name."""
    keeps_topic: bool
    """The files have the column `topic`, beside the folder of that name."""
    max_writers: int = 64
    compression: str = "zstd"
    is_plain: bool = False
    """Only encodings that all readers know: larger files, written more slowly."""
    tag: str = ""
    """Ends the names of this run's files, so that none is written over another run's."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A stretch of a stream for one worker: offsets from `first` to before `until`."""

    stream: Stream
    first: int
    until: int
    work: Any
    """Arguments of the source; a plain value of its own."""
    stored: Stored
    """Offsets that a table has already, in order: left out."""
    layout: Layout
    limits: TimeLimits
    value_schema: bytes | None = None
    """A serialised Arrow schema that values, as JSON, have to fit."""


class WrittenFile(NamedTuple):
    """A Parquet file that waits for its commit. Paths are relative to the archive."""

    kind: TableKind
    path: str
    rows: int
    size_bytes: int
    first_offset: int
    last_offset: int
    min_ms: int
    max_ms: int
    partition: dict[str, str]
    """Folder names: topic, event_date."""


class Done(NamedTuple):
    """Result of a unit."""

    key: str
    first: int
    until: int
    read: int
    """Records that the source gave."""
    skipped: int
    """Of those in `written`'s stead: the tables had them before (see `Unit.stored`)."""
    files: tuple[WrittenFile, ...]
    drafts: tuple[str, ...] = ()
    """Names that the files have in their folders until they are committed."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Files that become visible at once."""

    files: tuple[WrittenFile, ...]
    ranges: Mapping[str, tuple[int, int]]
    """By stream: from, and to before."""
    read: int
    skipped: int
    holes: int
    rows: Mapping[TableKind, int] = field(default_factory=dict)
    drafts: tuple[str, ...] = ()
    """As in `Done`; empty where the files have their own names."""

    def as_json(self) -> dict[str, Any]:
        """The proof, without the list of files."""
        return {
            "offsets": sum(until - first for first, until in self.ranges.values()),
            "holes": self.holes,
            "read": self.read,
            "written_before": self.skipped,
            **{str(kind): self.rows.get(kind, 0) for kind in TableKind},
            "ranges": {key: list(span) for key, span in self.ranges.items()},
        }


def joined(start: Mapping[str, int], done: Iterable[Done]) -> Commit:
    """The commit of finished units. CountsDoNotClose unless every sum does.

    `start`: where each stream was to go on. The units of a stream must follow one another without
    a gap; what they wrote, by the row counts in the files themselves, must be what they read.
    """
    units = sorted(done, key=lambda each: (each.key, each.first))
    ranges: dict[str, tuple[int, int]] = {}
    for each in units:
        first, at = ranges.get(each.key, (start[each.key], start[each.key]))
        if each.first != at or each.until < at:
            raise CountsDoNotClose(
                f"{each.key}: after offset {at} comes the stretch {each.first} to {each.until}"
            )
        ranges[each.key] = first, each.until
    files = tuple(file for each in units for file in each.files)
    read, skipped = sum(u.read for u in units), sum(u.skipped for u in units)
    rows = {kind: sum(f.rows for f in files if f.kind is kind) for kind in TableKind}
    if sum(rows.values()) + skipped != read:
        raise CountsDoNotClose(
            f"{read} records were read, {sum(rows.values())} written and {skipped} there before"
        )
    holes = sum(until - first for first, until in ranges.values()) - read
    if holes < 0:
        raise CountsDoNotClose(f"{read} records were read from {read + holes} offsets")
    drafts = tuple(name for each in units for name in each.drafts)
    return Commit(files, ranges, read, skipped, holes, rows, drafts)
