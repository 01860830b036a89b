"""Marker file of an archive's folder: its format and its catalog.

Without it a wrong `--format` or a forgotten `--catalog` would find no table, begin again and take
the files of the one that is there for what a dead run has left. The file is written before the
first record. A folder from before it existed is known by what each format leaves in it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import DataLost, PipelineError
from pipeline.sinks.archive.files import read_object, write_once
from pipeline.sinks.archive.values import TableKind

MARKER = "_archive.json"
VERSION = 1
PARQUET, DELTA, ICEBERG = "parquet", "delta", "iceberg"
COMMITS = "_commits"
CATALOG_FILE = "catalog.sqlite"
_SIGNS = {
    PARQUET: (f"{COMMITS}/*.json",),
    DELTA: tuple(f"{kind}/_delta_log/*.json" for kind in TableKind),
    ICEBERG: (CATALOG_FILE, *(f"{kind}/metadata/*.metadata.json" for kind in TableKind)),
}
"""Files that only that format leaves in the folder."""


class AnotherArchive(PipelineError):  # noqa: N818 - what happened
    """The folder holds an archive of another format or catalog. Nothing was touched."""

    EXIT_STATUS = 2


class ArchiveMarker(NamedTuple):
    """Of which format an archive is and, of Iceberg, where its tables are registered."""

    format: str
    catalog: str | None = None
    """Of pyiceberg's configuration, by name; None: the file beside the tables."""

    def __str__(self) -> str:
        """As on the command line."""
        return f"--format {self.format}" + (f" --catalog {self.catalog}" if self.catalog else "")


def check_marker(root: Path, wanted: ArchiveMarker) -> None:
    """Refuse a folder that is another archive's. AnotherArchive, DataLost. Writes nothing."""
    there = read_marker(root)
    if there is not None:
        if there != wanted:
            raise AnotherArchive(f"{root} is an archive of {there}, not of {wanted}")
        return
    others = [name for name in found_formats(root) if name != wanted.format]
    if others:
        raise AnotherArchive(
            f"{root} has an archive of --format {others[0]}, not of {wanted}: archive to a folder "
            "of its own"
        )
    if wanted.format == PARQUET and not (root / COMMITS).is_dir():
        stranger = next(_parquet_files(root), None)
        if stranger is not None:
            raise AnotherArchive(f"{root} has files of no commit of {wanted}, such as {stranger}")


def write_marker(root: Path, wanted: ArchiveMarker) -> None:
    """Note what the archive is, durably, before anything is written to it. AnotherArchive."""
    if read_marker(root) is None:
        try:
            write_once(root / MARKER, {"version": VERSION, **wanted._asdict()})
        except FileExistsError:
            check_marker(root, wanted)


def read_marker(root: Path) -> ArchiveMarker | None:
    """The marker of the folder; None when there is none. DataLost when it cannot be read."""
    path = root / MARKER
    try:
        content = read_object(path, VERSION)
        return ArchiveMarker(content["format"], content["catalog"])
    except FileNotFoundError:
        return None
    except KeyError as error:
        raise DataLost(f"{path} cannot be read: {error!r}") from error


def found_formats(root: Path) -> list[str]:
    """The formats that have left their signs in a folder."""
    return [name for name, signs in _SIGNS.items() if any(any(root.glob(each)) for each in signs)]


def has_rows(root: Path, kind: TableKind) -> bool:
    """True when an Iceberg table of that name was ever committed to in this folder."""
    return any(
        _has_snapshot(path) for path in sorted((root / kind / "metadata").glob("*.metadata.json"))
    )


def _has_snapshot(path: Path) -> bool:
    try:
        current = json.loads(path.read_bytes()).get("current-snapshot-id")
    except (OSError, ValueError, AttributeError):
        return False  # a run that died has left it; the catalog cannot name it
    return current is not None and current >= 0


def _parquet_files(root: Path) -> Iterator[Path]:
    for kind in TableKind:
        yield from (root / kind).rglob("*.parquet")
