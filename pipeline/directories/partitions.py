"""The partitions in data directories, for jobs over files. Looks at names only."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pipeline.directories.log_files import Files, refuse_stores, shown
from pipeline.errors import NothingThere
from storage.env import FileSystem
from storage.files.layout import PartitionName, parse_partition_dir
from storage.files.start_offsets import StartOffsets


class LocalPartition(NamedTuple):
    """A partition's directory in a data directory."""

    directory: str
    """The data directory."""
    name: PartitionName
    start_offset: int
    """As the directory's checkpoint has it; 0 when it says nothing."""

    @property
    def path(self) -> str:
        """Of the partition's directory."""
        return f"{self.directory}/{self.name.topic}-{self.name.partition}"


def partitions_in(
    fs: FileSystem, directories: Iterable[str], topics: Iterable[str] = ()
) -> list[LocalPartition]:
    """The partitions of the topics (none named: of all), by name; NothingThere, DiskError."""
    wanted, directories = set(topics), list(directories)
    if not isinstance(fs, Files):
        refuse_stores(directories)
    found = [each for directory in directories for each in _inside(fs, directory.rstrip("/"))]
    missing = wanted - {each.name.topic for each in found}
    if missing or not found:
        what = f"the topic {min(missing)!r}" if missing else "a partition"
        raise NothingThere(f"{what} is not in {', '.join(map(shown, directories))}")
    return sorted(
        (each for each in found if not wanted or each.name.topic in wanted),
        key=lambda each: each.name,
    )


def _inside(fs: FileSystem, directory: str) -> Iterator[LocalPartition]:
    starts = StartOffsets(fs, directory).load().offsets
    for entry in fs.list_dir(directory):
        name = parse_partition_dir(entry.name) if entry.is_dir else None
        if name is not None:
            yield LocalPartition(directory, name, starts.get(name, 0))
