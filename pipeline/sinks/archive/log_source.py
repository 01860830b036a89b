"""Logs as the source of an archive: the partitions that there are, cut into parts for workers.

`pipeline.sources` lists and reads them, from disk or over the wire. Every offset of a partition is
in one part, also those that no record has.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from pipeline.sinks.archive.rounds import ArchiveStretch
from pipeline.sinks.archive.run import Extent
from pipeline.sinks.archive.values import Stream
from pipeline.sinks.archive.writer import Read
from pipeline.sources.bounds import EVERYTHING, Range
from pipeline.sources.options import ReadOptions
from pipeline.sources.partition_view import PartitionView
from pipeline.sources.planning import chunks_of, views_of

PART_BYTES = 64 * 1024 * 1024


class LogSource:
    """A source over partitions."""

    def __init__(self, options: ReadOptions) -> None:
        """`options` say which partitions, where, and whether all of them or what is committed."""
        self._options = options
        self._views: dict[str, PartitionView] = {}

    def extents(self) -> list[Extent]:
        """The partitions as of now. NothingThere, BrokerRefused, DiskError."""
        found = []
        for view in views_of(self._options):
            stream = Stream(view.topic, view.topic_id, view.partition)
            self._views[stream.key] = view
            found.append(Extent(stream, view.start_offset, view.end_offset))
        return found

    def stretches(self, extent: Extent, first: int) -> Iterator[ArchiveStretch]:
        """The stream from `first` to its end, in order, without a gap. DataLost."""
        if first >= extent.end:
            return
        view, offsets = self._views[extent.stream.key], Range(first, extent.end - 1)
        chunks = chunks_of(self._options, view, offsets, EVERYTHING, PART_BYTES)
        for index, chunk in enumerate(chunks):
            is_last = index + 1 == len(chunks)
            until = extent.end if is_last else chunk.selection.last_offset + 1
            yield ArchiveStretch(extent.stream, first, until, chunk.size_bytes, chunk)
            first = until

    @property
    def read(self) -> Read:
        """Reads a part, in a worker."""
        return read_part


def read_part(chunk: object, schema: pa.Schema) -> Iterable[pa.RecordBatch]:
    """The records of a part. DataLost, DamagedLog, BrokerRefused."""
    from pipeline.sources.chunks import FileChunk, WireChunk
    from pipeline.sources.reading import read_chunk

    assert isinstance(chunk, FileChunk | WireChunk)
    return read_chunk(chunk, schema)
