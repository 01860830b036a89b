"""Reads a chunk, whichever transport it is for. Runs on executors, or wherever a job wants it."""

from collections.abc import Iterator

import pyarrow as pa

from pipeline.sources.chunks import Chunk, FileChunk, Task
from pipeline.sources.file_reading import read_file_chunk


def read_task(task: Task, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Records of a task's chunks, one after the other. DataLost, DamagedLog, BrokerRefused."""
    for chunk in task:
        yield from read_chunk(chunk, schema)


def read_chunk(chunk: Chunk, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The selected records of one chunk, with the columns of `schema`."""
    if isinstance(chunk, FileChunk):
        return read_file_chunk(chunk, schema)
    from pipeline.sources.wire_reading import read_wire_chunk  # the wire's messages take a while

    return read_wire_chunk(chunk, schema)
