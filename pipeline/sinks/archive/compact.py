"""Many small files of an archive become few large ones: the same rows, by partition and offset.

Of plain Parquet our own manifest says which files those are, and the exchange is one commit of it;
Delta and Iceberg do it by their own means. Rows are counted on both sides before anything counts.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeline.engine.engine import Engine
from pipeline.sinks.archive.merge import MergedPart, merged_groups, merged_schema
from pipeline.sinks.archive.parquet import ParquetArchive
from pipeline.sinks.archive.rows import TOPIC_ID
from pipeline.sinks.archive.sweep import named
from pipeline.sinks.archive.values import CountsDoNotClose, Layout, Stream, TableKind, WrittenFile
from pipeline.sinks.archive.writer import OpenFile

if TYPE_CHECKING:
    from pipeline.sinks.archive.delta import DeltaArchive

TARGET_BYTES = 128 * 1024 * 1024
ORDER = [("partition", "ascending"), (TOPIC_ID, "ascending"), ("offset", "ascending")]


class Merge(NamedTuple):
    """Files of one folder that become one."""

    path: str
    files: tuple[WrittenFile, ...]
    topic_ids: tuple[str | None, ...]
    """Of each file, where it is known: for rows of before they said it themselves."""


class Compacted(NamedTuple):
    """Result of compacting a table."""

    table: str
    files_before: int
    files_after: int
    rows: int


def merges(
    files: Iterable[WrittenFile],
    target_bytes: int,
    number: int,
    streams: Iterable[Stream] = (),
) -> list[Merge]:
    """Files to merge: neighbours in a folder, up to the target; never one alone.

    Those that are half as large as that stay as they are. `number` is that of the commit,
    `streams` are those that the archive knows.
    """
    ids = {each.name: each.topic_id for each in streams}
    by_folder: defaultdict[str, list[WrittenFile]] = defaultdict(list)
    for file in files:
        if file.size_bytes < target_bytes // 2:
            by_folder[file.path.rpartition("/")[0]].append(file)
    found: list[Merge] = []
    for folder, small in sorted(by_folder.items()):
        for group in _groups(sorted(small, key=_place), target_bytes):
            name = f"merged-{number:020d}-{len(found):06d}.parquet"
            known = tuple(_topic_id(each, ids) for each in group)
            found.append(Merge(f"{folder}/{name}", tuple(group), known))
    return found


def merge_files(merge: Merge, layout: Layout) -> WrittenFile:
    """Write the one file of a merge. CountsDoNotClose. Runs in a worker."""
    parts = [
        MergedPart(Path(layout.root, file.path), topic_id)
        for file, topic_id in zip(merge.files, merge.topic_ids, strict=True)
    ]
    expected = sum(each.rows for each in merge.files)
    first, schema = merge.files[0], merged_schema(parts)
    file = OpenFile(layout, first.kind, merge.path, schema)
    try:
        for group in merged_groups(parts, schema):
            file.fill(group, len(group))
        made = file.close(first.partition)
        file.take_name()
    except BaseException:
        file.abandon()
        raise
    if made.rows != expected:
        raise CountsDoNotClose(f"{merge.path}: {expected} rows became {made.rows}")
    return made._replace(
        first_offset=min(each.first_offset for each in merge.files),
        last_offset=max(each.last_offset for each in merge.files),
        min_ms=min(each.min_ms for each in merge.files),
        max_ms=max(each.max_ms for each in merge.files),
    )


def compact_parquet(
    archive: ParquetArchive, engine: Engine, target_bytes: int = TARGET_BYTES
) -> list[Compacted]:
    """Put the small files of an open archive together; what changed, by table."""
    before = archive.files()
    wanted = merges(before, target_bytes, archive.next_number, archive.streams())
    if wanted:
        added = list(engine.run(partial(merge_files, layout=archive.layout), [wanted]))
        archive.replace(added, [file.path for merge in wanted for file in merge.files])
    after = archive.files()
    return [
        Compacted(
            str(kind), _count(before, kind), _count(after, kind),
            sum(each.rows for each in after if each.kind is kind),
        )
        for kind in TableKind if _count(before, kind)
    ]  # fmt: skip


def compact_delta(archive: "DeltaArchive", target_bytes: int = TARGET_BYTES) -> Iterator[Compacted]:
    """Put the small files of each table together. Old ones stay for readers of old versions. Raises
    CountsDoNotClose.
    """
    for kind in TableKind:
        table = archive.table(kind)
        if table is None:
            continue
        before, rows = len(table.file_uris()), table.count()
        table.optimize.compact(target_size=target_bytes)
        table.update_incremental()
        if table.count() != rows:
            raise CountsDoNotClose(f"{kind}: {rows} rows became {table.count()}")
        yield Compacted(str(kind), before, len(table.file_uris()), rows)


def _groups(files: Sequence[WrittenFile], target_bytes: int) -> Iterator[list[WrittenFile]]:
    group: list[WrittenFile] = []
    size = 0
    for file in files:
        if group and size + file.size_bytes > target_bytes:
            if len(group) > 1:
                yield group
            group, size = [], 0
        group.append(file)
        size += file.size_bytes
    if len(group) > 1:
        yield group


def _place(file: WrittenFile) -> tuple[str, str, int]:
    """Stream and offset; of a merged file only the offset says something."""
    name = named(Path(file.path))
    if name is None:
        return file.path.rpartition("/")[2].split("-")[0], "", file.first_offset
    return str(name.partition), name.made, file.first_offset


def _topic_id(file: WrittenFile, ids: Mapping[tuple[str, str, int], str]) -> str | None:
    name = named(Path(file.path))
    return None if name is None else ids.get(name[:3]) or None


def _count(files: Iterable[WrittenFile], kind: TableKind) -> int:
    return sum(each.kind is kind for each in files)
