"""File operations of all archive formats: the lock, durable names, files written once."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from pipeline.errors import DataLost, PipelineError
from pipeline.sinks.archive.values import Commit, TableChanged, WrittenFile
from pipeline.sinks.archive.writer import UNFINISHED
from storage.env import Lock
from storage.errors import DirectoryLocked
from storage.posix import real_env

LOCK = "_lock"


class ArchiveBusy(PipelineError):  # noqa: N818 - what happened
    """Another archiver is at work in the folder."""

    EXIT_STATUS = 2


def lock_archive(root: Path) -> Lock:
    """Make the folder if need be, and take it for this process. ArchiveBusy."""
    root.mkdir(parents=True, exist_ok=True)
    try:
        return real_env().fs.lock(str(root / LOCK))
    except DirectoryLocked as error:
        raise ArchiveBusy(f"{root}: another archiver is at work there") from error


def sync_folders(paths: Iterable[Path], root: Path) -> None:
    """Make the names of these files durable, and those of their folders below `root`."""
    folders = {folder for path in paths for folder in path.relative_to(root).parents}
    for folder in sorted(folders, key=lambda each: -len(each.parts)):
        real_env().fs.sync_dir(str(root / folder))


def write_once(path: Path, content: Mapping[str, Any]) -> None:
    """A file that must not be there yet, whole and durable at once. FileExistsError."""
    if not path.parent.exists():
        path.parent.mkdir()
        sync_folders([path.parent], path.parent.parent)
    unfinished = path.with_name(f"{path.name}{UNFINISHED}-{uuid4().hex}")
    with unfinished.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(unfinished, path)
    finally:
        unfinished.unlink()
    sync_folders([path], path.parent)


def remove_unfinished(*folders: Path) -> None:
    """Removes unfinished files that a killed run has left. Hold the lock."""
    for folder in folders:
        for left in folder.glob(f"*{UNFINISHED}-*"):
            left.unlink(missing_ok=True)


def read_object(path: Path, newest: int) -> dict[str, Any]:
    """A JSON object with a `version` of at most `newest`. DataLost, FileNotFoundError."""
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        version = int(content["version"])
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataLost(f"{path} cannot be read: {error!r}") from error
    if version > newest:
        raise DataLost(f"{path} has version {version}: a newer archiver wrote it")
    return content


def take_names(root: Path, commit: Commit) -> None:
    """Gives drafts that are about to count their names. TableChanged for one that has gone.

    Only the driver does, with the very drafts of the attempts whose results it has.
    """
    for each, draft in zip(commit.files, commit.drafts, strict=False):
        place = root / each.path
        try:
            place.with_name(draft).rename(place)
        except FileNotFoundError as error:
            raise _gone(place) from error


def still_there(root: Path, files: Iterable[WrittenFile]) -> None:
    """Checks that files about to count are where they were written. TableChanged.

    An archiver that the lock does not keep apart may have taken them for what a dead run has left.
    """
    for each in files:
        place = root / each.path
        if not place.exists() or place.stat().st_size != each.size_bytes:
            raise _gone(place)


def _gone(place: Path) -> TableChanged:
    return TableChanged(f"{place} has gone: another archiver is at work there")
