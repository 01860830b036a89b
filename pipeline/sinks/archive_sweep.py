"""Removes files that a run that died has left in the folders of a table format.

Such formats ignore files that no commit has. Ours are told by their names, which say from which
offset of which stream they hold records; one that begins at or behind the offset from which its
stream goes on cannot have been committed. The archive's lock must be held.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from pipeline.sinks.archive_values import Kind, Stream
from pipeline.sinks.archive_writer import UNFINISHED

_NAME = re.compile(r"(\d+)-(.{1,8})-(\d{20})-\d{20}(?:\.\d+)?\.parquet")
_TOPIC = "topic="


def sweep(
    root: Path, streams: Iterable[Stream], following: Mapping[Kind, Mapping[str, int]]
) -> int:
    """How many files of these streams went. `following`: by table and stream, where it goes on."""
    streams = list(streams)
    removed = 0
    for kind in Kind:
        at = {_short(each): following[kind].get(each.key, 0) for each in streams}
        for folder in {root / kind / f"{_TOPIC}{each.topic}" for each in streams}:
            for path in folder.rglob("*.parquet*"):
                if UNFINISHED in path.name or _is_left_over(path, root / kind, at):
                    path.unlink()
                    removed += 1
    return removed


def _is_left_over(path: Path, table: Path, at: Mapping[tuple[str, str, int], int]) -> bool:
    named = _NAME.fullmatch(path.name)
    folder = path.relative_to(table).parts[0]
    if named is None or not folder.startswith(_TOPIC):
        return False
    partition, made, first = named.groups()
    known = at.get((folder.removeprefix(_TOPIC), made, int(partition)))
    return known is not None and int(first) >= known


def _short(stream: Stream) -> tuple[str, str, int]:
    return stream.topic, stream.topic_id[:8] or "0", stream.partition
