"""Parts of a read, as plain values: what a task gets, and what it needs to read it."""

from typing import NamedTuple

from broker.access.settings import IN_THE_CLEAR, ClientSecurity
from pipeline.decode.decoder import Selection
from pipeline.directories.tier_log import StoredSegment
from pipeline.sources.partition_view import PartitionView


class FileChunk(NamedTuple):
    """A stretch of a segment in a directory of this machine (or one that all machines see), or in a
    store."""

    view: PartitionView
    segment: int
    """Base offset."""
    start: int
    end: int
    """Byte positions."""
    selection: Selection
    inode: int
    """Of the `.log`: another one is another file, made by the cleaner, with other positions."""
    fails_on_loss: bool = True
    stored: StoredSegment | None = None
    """The segment, where it is read from the store of a tier."""

    @property
    def size_bytes(self) -> int:
        """Bytes to read."""
        return self.end - self.start


class WireChunk(NamedTuple):
    """A range of offsets to be fetched from the partition's leader."""

    view: PartitionView
    address: str
    """HOST:PORT of the leader, as of the plan."""
    selection: Selection
    is_committed: bool
    size_bytes: int
    """A guess, where nothing tells."""
    fails_on_loss: bool = True
    security: ClientSecurity = IN_THE_CLEAR
    bootstrap: str = ""
    """HOST:PORT, comma-separated, of those who know where the leader has gone."""


Chunk = FileChunk | WireChunk
Task = tuple[Chunk, ...]
