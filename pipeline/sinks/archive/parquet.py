"""An archive of plain Parquet files with a manifest: needs no table format to be exact.

    records/topic=T/event_date=D/*.parquet      also quarantine/ and dead_letters/, by topic
    _commits/00000000000000000042.json          what the commit number 42 added, and up to where
    _staging/                                   files that no commit has yet

A commit counts once its manifest has its name, at one instant; its files then move out of
`_staging`, and the next run finishes that. So a reader of the folders never sees
a file that no commit has, and never one twice. One archiver at a time: it holds a lock.
"""

import json
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from pipeline.errors import DataLost
from pipeline.sinks.archive.files import (
    lock_archive,
    remove_unfinished,
    still_there,
    sync_folders,
    take_names,
    write_once,
)
from pipeline.sinks.archive.marker import (
    COMMITS,
    PARQUET,
    ArchiveMarker,
    check_marker,
    write_marker,
)
from pipeline.sinks.archive.values import (
    Commit,
    Layout,
    SchemaDiffers,
    Stream,
    TableChanged,
    TableKind,
    TableStanding,
    WrittenFile,
)
from pipeline.sinks.archive.writer import STAGING
from storage.env import Lock

FORMAT = 1
MARK = ArchiveMarker(PARQUET)
_DIGITS = 20


class ParquetArchive:
    """The archive in one folder."""

    def __init__(
        self,
        root: str,
        *,
        max_writers: int = 64,
        value_schema: pa.Schema | None = None,
        is_plain: bool = False,
    ) -> None:
        """Nothing is opened yet. `is_plain`: see `Layout`."""
        self._value_schema = "" if value_schema is None else str(value_schema)
        self.root = Path(root)
        self.layout = Layout(
            str(self.root), staged=True, keeps_topic=False, max_writers=max_writers,
            is_plain=is_plain,
        )  # fmt: skip
        self._lock: Lock | None = None
        self._last: dict[str, Any] = {}

    def __enter__(self) -> Self:
        """Take the lock, finish the last commit, remove what a run that died has left.

        ArchiveBusy, AnotherArchive, DataLost when files of the last commit are gone.
        """
        self._lock = lock_archive(self.root)
        try:
            check_marker(self.root, MARK)
            self._recover()
        except BaseException:
            self._lock.release()
            raise
        return self

    def _recover(self) -> None:
        numbers = commit_numbers(self.root)
        if numbers:
            self._last = read_commit(self.root, numbers[-1])
            self._settle(self._last)
        shutil.rmtree(self.root / STAGING, ignore_errors=True)
        remove_unfinished(self.root, self.root / COMMITS)

    def __exit__(self, *_: object) -> None:
        """Let others have it."""
        if self._lock is not None:
            self._lock.release()

    def standing(self, streams: Iterable[Stream]) -> TableStanding:
        """Next offsets of these streams; all tables move together. AnotherArchive."""
        write_marker(self.root, MARK)
        following = self._last.get("next", {})
        known = {each.key: following[each.key] for each in streams if each.key in following}
        return TableStanding(known)

    def commit(self, commit: Commit) -> int:
        """Make it visible, at once; its number. TableChanged when another process has committed.
        Raises SchemaDiffers.
        """
        known = self._last.get("value_schema", self._value_schema)
        if known != self._value_schema:
            raise SchemaDiffers(
                f"{self.root}: values were archived with another schema: {known or 'none'!r}"
            )
        at = self._last.get("next", {})
        for key, (first, _) in commit.ranges.items():
            if first < at.get(key, 0):
                raise TableChanged(f"{key}: {first} is archived already, up to {at[key]}")
        following = {key: until for key, (_, until) in commit.ranges.items()}
        take_names(self.root / STAGING, commit)
        return self._publish(commit.files, (), following, commit.as_json())

    def replace(self, added: Sequence[WrittenFile], removed: Sequence[str]) -> int:
        """Put files in the place of others that hold the same rows. The commit's number."""
        return self._publish(added, removed, {}, {"rows": sum(each.rows for each in added)})

    @property
    def next_number(self) -> int:
        """Of the commit that comes next."""
        number: int = self._last.get("number", 0) + 1
        return number

    def streams(self) -> list[Stream]:
        """Those that were archived."""
        return [Stream.of_key(key) for key in self._last.get("next", {})]

    def files(self) -> list[WrittenFile]:
        """Every file that counts, in the order of the commits."""
        return committed_files(self.root)

    def _publish(
        self,
        added: Sequence[WrittenFile],
        removed: Sequence[str],
        following: Mapping[str, int],
        proof: Mapping[str, Any],
    ) -> int:
        number = self.next_number
        manifest = {
            "format": FORMAT,
            "number": number,
            "created_ms": time.time_ns() // 1_000_000,
            "value_schema": self._last.get("value_schema", self._value_schema),
            "next": {**self._last.get("next", {}), **following},
            "proof": proof,
            "added": [each._asdict() for each in added],
            "removed": list(removed),
        }
        still_there(self.root / STAGING, added)
        sync_folders((self.root / STAGING / each.path for each in added), self.root)
        path = self.root / COMMITS / f"{number:0{_DIGITS}d}.json"
        try:
            write_once(path, manifest)
        except FileExistsError as error:
            raise TableChanged(
                f"{path} exists: another process has committed to the archive"
            ) from error
        self._last = manifest
        self._settle(manifest)
        return number

    def _settle(self, manifest: Mapping[str, Any]) -> None:
        """Move the files of a commit where they belong; those that it replaces go."""
        moved = []
        for each in manifest["added"]:
            staged, place = self.root / STAGING / each["path"], self.root / each["path"]
            if staged.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                staged.rename(place)
                moved.append(place)
            elif not place.exists():
                raise DataLost(f"{place}: the file is gone, but commit {manifest['number']} has it")
        sync_folders(moved, self.root)
        for path in manifest["removed"]:
            (self.root / path).unlink(missing_ok=True)


def commit_numbers(root: Path) -> list[int]:
    """The commits that there are, in order."""
    names = (path.stem for path in (root / COMMITS).glob("*.json"))
    return sorted(int(name) for name in names if name.isdigit())


def read_commit(root: Path, number: int) -> dict[str, Any]:
    """One manifest. DataLost when it cannot be read."""
    path = root / COMMITS / f"{number:0{_DIGITS}d}.json"
    try:
        manifest: dict[str, Any] = json.loads(path.read_bytes())
        if manifest["format"] > FORMAT:
            raise DataLost(f"{path} has format {manifest['format']}: a newer archiver wrote it")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataLost(f"{path} cannot be read: {error}") from error
    return manifest


def committed_files(root: Path) -> list[WrittenFile]:
    """Every file of the archive that counts."""
    files: dict[str, WrittenFile] = {}
    for number in commit_numbers(root):
        manifest = read_commit(root, number)
        for path in manifest["removed"]:
            files.pop(path, None)
        for each in manifest["added"]:
            files[each["path"]] = WrittenFile(**{**each, "kind": TableKind(each["kind"])})
    return list(files.values())
