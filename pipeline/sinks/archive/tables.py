"""Archives of table formats: three tables, committed one after the other.

The tables themselves store the next offsets. The records go first: their commit decides a round,
and names the list of the files that follow into the quarantine and the dead letters (`Asides`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Generic, Self, TypeVar
from uuid import uuid4

import pyarrow as pa

from pipeline.sinks.archive.asides import ASIDES, FOLLOWERS, NO_ROUND, Asides
from pipeline.sinks.archive.files import (
    lock_archive,
    remove_unfinished,
    still_there,
    sync_folders,
    take_names,
)
from pipeline.sinks.archive.marker import ArchiveMarker, check_marker, write_marker
from pipeline.sinks.archive.stored import stored_offsets
from pipeline.sinks.archive.sweep import sweep
from pipeline.sinks.archive.values import (
    Commit,
    Layout,
    Stored,
    Stream,
    TableChanged,
    TableKind,
    TableStanding,
    WrittenFile,
)
from storage.env import Lock

TableT = TypeVar("TableT")
_ATTEMPTS = 4
"""To commit: others may be at work in the table, as long as they archive nothing."""


class TableArchive(ABC, Generic[TableT]):
    """Three tables in one folder, locked by one archiver at a time."""

    def __init__(self, layout: Layout, value_schema: pa.Schema | None, mark: ArchiveMarker) -> None:
        """Nothing is opened yet. `mark`: what the folder must be the archive of."""
        self.root = Path(layout.root)
        self.layout = layout
        self._mark = mark
        self._asides = Asides(self.root)
        self._value_schema = value_schema
        self._known: dict[TableKind, dict[str, int]] = {}
        self._lock: Lock | None = None
        self._swept: set[Stream] = set()

    def __enter__(self) -> Self:
        """Take the lock. ArchiveBusy, AnotherArchive."""
        self._lock = lock_archive(self.root)
        try:
            check_marker(self.root, self._mark)
            remove_unfinished(self.root, self.root / ASIDES)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Let others have it."""
        if self._lock is not None:
            self._lock.release()

    def standing(self, streams: Iterable[Stream]) -> TableStanding:
        """Next offsets of these streams; the left-overs of a dead run are finished or removed.

        AnotherArchive, DataLost, TableChanged.
        """
        write_marker(self.root, self._mark)
        self._finish()
        streams = list(streams)
        tables = {kind: self.table(kind) for kind in TableKind}
        self._known = {
            kind: {} if table is None else self._following(table, streams)
            for kind, table in tables.items()
        }
        self._sweep([each for each in streams if each not in self._swept])
        self.layout = replace(self.layout, tag=uuid4().hex[:8])
        return TableStanding(self._known[TableKind.RECORDS], self._stored(streams))

    def commit(self, commit: Commit) -> int:
        """Make it visible, the records first. SchemaDiffers, TableChanged. The version."""
        take_names(self.root, commit)
        still_there(self.root, commit.files)
        sync_folders((self.root / each.path for each in commit.files), self.root)
        number = self._asides.write(commit)
        version = self._append(TableKind.RECORDS, commit, number)
        self._follow(commit, number)
        return version

    @abstractmethod
    def table(self, kind: TableKind) -> TableT | None:
        """One of the tables; None while it has not been needed."""

    @abstractmethod
    def _ready(self, kind: TableKind) -> TableT:
        """The table as it is now, with our columns. SchemaDiffers, TableChanged."""

    @abstractmethod
    def _following(self, table: TableT, streams: Sequence[Stream]) -> dict[str, int]:
        """The next offset of each stream, as the table has it; perhaps those of others, too."""

    @abstractmethod
    def _round(self, table: TableT) -> int:
        """The list that the table's last round names (see `Asides`)."""

    @abstractmethod
    def _add(
        self,
        kind: TableKind,
        table: TableT,
        files: Sequence[WrittenFile],
        commit: Commit,
        number: int,
    ) -> int:
        """Commit files with positions, which never fall, and the round. TableChanged. Version."""

    @abstractmethod
    def _files(self, table: TableT) -> list[Path]:
        """The files that count now."""

    @abstractmethod
    def _listed(self, table: TableT) -> set[str]:
        """Names of the files that count now, or in a version that is kept."""

    def _append(self, kind: TableKind, commit: Commit, number: int) -> int:
        files = [each for each in commit.files if each.kind is kind]
        for attempt in count(1):
            table = self._ready(kind)
            if kind is TableKind.RECORDS:
                self._check_unmoved(table, commit)
            elif self._is_done(table, number):
                return -1
            try:
                version = self._add(kind, table, files, commit, number)
            except TableChanged:
                if attempt == _ATTEMPTS:
                    raise
            else:
                break
        if kind is TableKind.RECORDS:
            self._known[kind] |= {key: until for key, (_, until) in commit.ranges.items()}
        return version

    def _check_unmoved(self, table: TableT, commit: Commit) -> None:
        """The records go on from where they were when the round was planned. TableChanged."""
        known = self._known[TableKind.RECORDS]
        now = self._following(table, [Stream.of_key(key) for key in commit.ranges])
        if any(known.get(key) != now.get(key) for key in now.keys() | commit.ranges.keys()):
            raise TableChanged(
                f"{self.root / TableKind.RECORDS}: another archiver has committed meanwhile"
            )
        for key, (first, _) in commit.ranges.items():
            if first < known.get(key, 0):
                raise TableChanged(f"{key}: {first} is archived already, up to {known[key]}")

    def _is_done(self, table: TableT, number: int) -> bool:
        """True when a list is in a following table: the records name none before the last one is.

        The table must have been read before the records are.
        """
        if self._round(table) == number:
            return True
        records = self.table(TableKind.RECORDS)
        return records is None or self._round(records) != number

    def _follow(self, commit: Commit, number: int) -> None:
        """Commits the files of a round that counts to the other tables."""
        for kind in FOLLOWERS:
            if any(each.kind is kind for each in commit.files):
                self._append(kind, commit, number)
        self._asides.forget(number, self._known[TableKind.RECORDS])

    def _finish(self) -> None:
        """The last round that counts is in every table. DataLost, TableChanged."""
        records = self.table(TableKind.RECORDS)
        number = NO_ROUND if records is None else self._round(records)
        if records is None or number == NO_ROUND:
            return
        commit = self._asides.read(number)
        streams = [Stream.of_key(key) for key in commit.ranges]
        self._known[TableKind.RECORDS] = self._following(records, streams)
        self._follow(commit, number)

    def _sweep(self, streams: Sequence[Stream]) -> None:
        """Removes files that dead runs have left of these streams."""
        for kind in TableKind:
            table = self.table(kind)
            listed = None if table is None else partial(self._listed, table)
            sweep(self.root / kind, streams, self._known[TableKind.RECORDS], listed)
        self._swept.update(streams)

    def _stored(self, streams: Sequence[Stream]) -> dict[str, Stored]:
        """Offsets that tables have ahead of the records (`stored_offsets`)."""
        found: dict[str, Stored] = {}
        for each in streams:
            first = self._known[TableKind.RECORDS].get(each.key, 0)
            ahead = [kind for kind in FOLLOWERS if self._known[kind].get(each.key, 0) > first]
            tables = [table for table in map(self.table, ahead) if table is not None]
            files = [path for table in tables for path in self._files(table)]
            if files:
                found[each.key] = stored_offsets(files, each, first)
        return found
