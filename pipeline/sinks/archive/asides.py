"""Lists of the files that follow a round's records into the other tables; they outlive a dead run.

A round counts once its records do, and their commit names its list, by a number. The next run
commits the files of the list that are not in their table yet: exactly those that the first run
wrote, whatever the clock and the options are by then.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from pipeline.errors import DataLost
from pipeline.sinks.archive.files import read_object, write_once
from pipeline.sinks.archive.values import Commit, TableKind, WrittenFile

ASIDES = "_asides"
VERSION = 1
FOLLOWERS = (TableKind.QUARANTINE, TableKind.DEAD)
"""The tables that follow the records."""
NO_ROUND = 0
_SPARE_BITS = 66
"""Bits of a UUID's that a number of 62 bits leaves."""


@dataclass(frozen=True, slots=True)
class Asides:
    """The lists of an archive."""

    root: Path

    def write(self, commit: Commit) -> int:
        """Note durably what follows; the number of the list, or `NO_ROUND` when nothing does."""
        if not any(file.kind in FOLLOWERS for file in commit.files):
            return NO_ROUND
        number = (uuid4().int >> _SPARE_BITS) or 1
        content = {"version": VERSION, **commit.as_json(), "files": _files(commit)}
        write_once(self._path(number), content)
        return number

    def read(self, number: int) -> Commit:
        """Reads a list. DataLost."""
        path = self._path(number)
        try:
            return _commit(read_object(path, VERSION))
        except FileNotFoundError as error:
            raise DataLost(
                f"{path} is gone: it says which files of {' and '.join(FOLLOWERS)} belong to the "
                "last round of the records"
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            raise DataLost(f"{path} cannot be read: {error!r}") from error

    def forget(self, named: int, following: Mapping[str, int]) -> None:
        """Remove lists whose round can count no more: another has its offsets.

        `named`: by the records, kept. `following`: where the streams go on.
        """
        for path in (self.root / ASIDES).glob("*.json"):
            number = int(path.stem, 16)
            if number != named and _is_over(self.read(number), following):
                path.unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self.root / ASIDES / f"{number:016x}.json"


def _is_over(commit: Commit, following: Mapping[str, int]) -> bool:
    return any(following.get(key, 0) > first for key, (first, _) in commit.ranges.items())


def _files(commit: Commit) -> list[dict[str, Any]]:
    return [each._asdict() for each in commit.files if each.kind in FOLLOWERS]


def _commit(content: Mapping[str, Any]) -> Commit:
    files = tuple(
        WrittenFile(**{**each, "kind": TableKind(each["kind"])}) for each in content["files"]
    )
    ranges = {key: (int(first), int(until)) for key, (first, until) in content["ranges"].items()}
    rows = {kind: int(content[kind]) for kind in TableKind}
    return Commit(files, ranges, content["read"], content["written_before"], content["holes"], rows)
