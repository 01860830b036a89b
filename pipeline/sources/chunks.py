"""Parts of a read, as plain values: what a task gets, and what it needs to read it."""

from typing import NamedTuple

from pipeline.decoder import Selection
from pipeline.sources.partition_view import PartitionView


class FileChunk(NamedTuple):
    """A stretch of a segment in a directory of this machine (or one that all machines see)."""

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

    @property
    def size_bytes(self) -> int:
        """What is read."""
        return self.end - self.start


Chunk = FileChunk
Task = tuple[Chunk, ...]
