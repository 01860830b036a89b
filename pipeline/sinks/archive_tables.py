"""What archives of table formats have in common: three tables, committed one after the other.

The tables themselves say how far they are. The quarantine and the dead letters go first and the
records last, so after a crash between them the next run reads those records again and the tables
that have them already leave them out (`Unit.floors`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Generic, Self, TypeVar

import pyarrow as pa

from pipeline.sinks.archive_parquet import lock_archive
from pipeline.sinks.archive_sweep import sweep
from pipeline.sinks.archive_values import Commit, Kind, Layout, Offsets, Stream, WrittenFile
from storage.env import Lock

TableT = TypeVar("TableT")
_ORDER = (Kind.QUARANTINE, Kind.DEAD, Kind.RECORDS)


class TableArchive(ABC, Generic[TableT]):
    """Three tables in one folder, held by one archiver at a time."""

    def __init__(self, layout: Layout, value_schema: pa.Schema | None) -> None:
        """Nothing is opened yet."""
        self.root = Path(layout.root)
        self.layout = layout
        self._value_schema = value_schema
        self._known: dict[Kind, dict[str, int]] = {}
        self._lock: Lock | None = None
        self._swept: set[Stream] = set()

    def __enter__(self) -> Self:
        """Take the lock. ArchiveBusy."""
        self._lock = lock_archive(self.root)
        return self

    def __exit__(self, *_: object) -> None:
        """Let others have it."""
        if self._lock is not None:
            self._lock.release()

    def offsets(self, streams: Iterable[Stream]) -> Offsets:
        """Where to go on with these streams; what a run that died has left of new ones goes."""
        streams = list(streams)
        for kind in Kind:
            table = self.table(kind)
            self._known[kind] = {} if table is None else self._following(table, streams)
        new = [each for each in streams if each not in self._swept]
        sweep(self.root, new, self._known)
        self._swept.update(new)
        return self._known

    def commit(self, commit: Commit) -> int:
        """Make it visible, table by table. TableChanged when that is refused. The version."""
        version = -1
        for kind in _ORDER:
            files = [each for each in commit.files if each.kind is kind]
            if files or kind is Kind.RECORDS:
                version = self._append(kind, files, commit)
        return version

    @abstractmethod
    def table(self, kind: Kind) -> TableT | None:
        """One of the tables; None while it has not been needed."""

    @abstractmethod
    def _following(self, table: TableT, streams: Sequence[Stream]) -> dict[str, int]:
        """The offset that each stream goes on from, as the table has it."""

    @abstractmethod
    def _append(self, kind: Kind, files: Sequence[WrittenFile], commit: Commit) -> int:
        """Commit files to a table, and the offsets to go on from. SchemaDiffers, TableChanged."""
