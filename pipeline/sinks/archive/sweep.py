"""Files that a run that died has left in the folders of a table format.

Such formats ignore files that no commit has. Ours have names that say from which
offset of which stream they hold records; one that begins at or behind the offset from which its
stream goes on, and that no version of the table lists, cannot have been committed. Where there is
no table, whole files stay: they may be another's. The caller must have the archive's lock.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pipeline.sinks.archive.values import Stream
from pipeline.sinks.archive.writer import UNFINISHED

_NAME = re.compile(r"(\d+)-(.{1,8})-(\d{20})-(\d{20})(?:\.\d+)?(?:-[0-9a-f]{8})?\.parquet")
_TOPIC = "topic="


class NamedFile(NamedTuple):
    """Parts of a file's name."""

    topic: str
    made: str
    """The first characters of the topic's id; "0" where none is known."""
    partition: int
    first: int
    until: int

    def is_of(self, stream: Stream) -> bool:
        """True when it holds records of that stream."""
        return self[:3] == stream.name


def named(path: Path) -> NamedFile | None:
    """Parses a file's path; None for a file that the archive has not named."""
    found = _NAME.fullmatch(path.name)
    topics = [part for part in path.parts if part.startswith(_TOPIC)]
    if found is None or not topics:
        return None
    partition, made, first, until = found.groups()
    topic = topics[-1].removeprefix(_TOPIC)
    return NamedFile(topic, made, int(partition), int(first), int(until))


def sweep(
    table: Path,
    streams: Iterable[Stream],
    following: Mapping[str, int],
    listed: Callable[[], Collection[str]] | None,
) -> int:
    """Removes left-over files of these streams from a table's folder; their number.

    `following`: next offset by stream. `listed`: names of the files that any version of the
    table has, asked for only when there is something that may go; None: there is no table.
    """
    left = list(_left_over(table, list(streams), following))
    gone = [path for path in left if UNFINISHED in path.name]
    whole = [path for path in left if UNFINISHED not in path.name]
    if whole and listed is not None:
        kept = listed()
        gone += [path for path in whole if path.name not in kept]
    for path in gone:
        path.unlink(missing_ok=True)
    return len(gone)


def _left_over(table: Path, streams: list[Stream], following: Mapping[str, int]) -> Iterator[Path]:
    at = {each.name: following.get(each.key, 0) for each in streams}
    for folder in {table / f"{_TOPIC}{each.topic}" for each in streams}:
        for path in folder.rglob("*.parquet*"):
            name = named(path)
            known = None if name is None else at.get(name[:3])
            if UNFINISHED in path.name or (known is not None and name and name.first >= known):
                yield path
