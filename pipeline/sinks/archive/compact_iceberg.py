"""Days of an Iceberg table that have several files become one file each, a commit a day.

Files of ours are merged without decoding, a piece at a time. Those that others have written or
deleted rows of go through memory, and only where they fit there.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table

from pipeline.sinks.archive.compact import ORDER, TARGET_BYTES, Compacted, Merge, merge_files
from pipeline.sinks.archive.iceberg import IcebergArchive, path_of
from pipeline.sinks.archive.sweep import named
from pipeline.sinks.archive.values import CountsDoNotClose, TableChanged, TableKind, WrittenFile

IN_MEMORY_BYTES = 1 << 30
"""Of a day that goes through memory, unpacked."""
_MERGED = "merged-"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def compact_iceberg(
    archive: IcebergArchive, target_bytes: int = TARGET_BYTES
) -> Iterator[Compacted]:
    """Rewrite the days that have several files and fit the target. Old snapshots keep theirs.

    CountsDoNotClose, TableChanged.
    """
    for kind in TableKind:
        table = archive.table(kind)
        if table is None:
            continue
        tasks = list(table.scan().plan_files())
        rows, at = sum(task.file.record_count for task in tasks), _snapshot(table)
        days: defaultdict[tuple[Any, ...], list[FileScanTask]] = defaultdict(list)
        for task in tasks:
            days[_values(task.file.partition)].append(task)
        for day, group in days.items():
            size = sum(task.file.file_size_in_bytes for task in group)
            if len(group) > 1 and size <= target_bytes:
                at = _put_together(archive, kind, day, group, at)
        now = archive.table(kind)
        after = [] if now is None else [task.file for task in now.scan().plan_files()]
        if sum(file.record_count for file in after) != rows:
            raise CountsDoNotClose(f"{kind}: the rows changed their number")
        yield Compacted(str(kind), len(tasks), len(after), rows)


def iceberg_filter(day: Sequence[Any]) -> str:
    """The rows of one partition: a topic and, of the records, a day since 1970."""
    topic = f"topic == '{day[0]}'"
    if len(day) < 2:
        return topic
    start = _EPOCH + timedelta(days=_day_number(day[1]))
    end = start + timedelta(days=1)
    return f"{topic} and timestamp >= '{start.isoformat()}' and timestamp < '{end.isoformat()}'"


def _put_together(
    archive: IcebergArchive,
    kind: TableKind,
    day: tuple[Any, ...],
    group: list[FileScanTask],
    at: int,
) -> int:
    """The snapshot that came of it, or the one that there was."""
    table = archive.table(kind)
    if table is None or _snapshot(table) != at:
        raise TableChanged(f"{archive.root / kind}: another process has committed meanwhile")
    files = [task.file for task in group]
    if all(_is_ours(archive.root, task) for task in group):
        made = merge_files(_merge(archive, kind, table, files), archive.layout)
        try:
            archive.exchange(table, made, files)
        except TableChanged:
            (archive.root / made.path).unlink()
            raise
    elif sum(map(_unpacked, files)) <= IN_MEMORY_BYTES:
        archive.rewrite(kind, iceberg_filter(day), ORDER)
    else:
        return at
    now = archive.table(kind)
    return at if now is None else _snapshot(now)


def _merge(archive: IcebergArchive, kind: TableKind, table: Table, files: list[DataFile]) -> Merge:
    ids = {each.name: each.topic_id for each in archive.streams(table)}
    paths = [path_of(file.file_path) for file in files]
    folder = paths[0].parent.relative_to(archive.root)
    parts = tuple(
        WrittenFile(
            kind, str(path.relative_to(archive.root)), file.record_count,
            file.file_size_in_bytes, 0, 0, 0, 0, {},
        )
        for path, file in zip(paths, files, strict=True)
    )  # fmt: skip
    known = tuple(_topic_id(path, ids) for path in paths)
    return Merge(f"{folder}/{_MERGED}{uuid4().hex}.parquet", parts, known)


def _topic_id(path: Path, ids: Mapping[tuple[str, str, int], str]) -> str | None:
    name = named(path)
    return None if name is None else ids.get(name[:3]) or None


def _is_ours(root: Path, task: FileScanTask) -> bool:
    path = path_of(task.file.file_path)
    is_written = named(path) is not None or path.name.startswith(_MERGED)
    return is_written and path.is_relative_to(root) and not task.delete_files


def _unpacked(file: DataFile) -> int:
    metadata = pq.read_metadata(path_of(file.file_path))
    return sum(metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups))


def _snapshot(table: Table) -> int:
    snapshot = table.current_snapshot()
    return -1 if snapshot is None else snapshot.snapshot_id


def _values(partition: Any) -> tuple[Any, ...]:
    """Of a row of pyiceberg's, whose type says nothing of its length."""
    return tuple(partition[at] for at in range(len(partition)))


def _day_number(day: Any) -> int:
    return day if isinstance(day, int) else (day - _EPOCH.date()).days
