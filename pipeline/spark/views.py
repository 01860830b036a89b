"""Spark's face of the views: batches, segments, index entries, partitions."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from pipeline.decode.schemas import VIEWS
from pipeline.errors import BadOption
from pipeline.sources.chunks import FileChunk
from pipeline.sources.options import ReadOptions
from pipeline.sources.partition_view import PartitionView
from pipeline.sources.planning import plan_tasks, views_of
from pipeline.sources.view_rows import batch_rows, partition_rows
from pipeline.spark.task import TaskPartition

BY_CHUNK = "batches"


class ViewPartition(InputPartition):
    """A partition as it stands."""

    def __init__(self, view: PartitionView) -> None:
        """Plain values."""
        self.view = view


class ViewReader(DataSourceReader):
    """A batch read of a view; `.schema(...)` may narrow it."""

    def __init__(self, options: ReadOptions, columns: pa.Schema) -> None:
        """Reads nothing yet. BadOption for columns that the view has not."""
        whole = VIEWS[options.view]
        for field in columns:
            if field.name not in whole.names or whole.field(field.name).type != field.type:
                raise BadOption(f"view={options.view} has no column {field.name} {field.type}")
        self.options = options
        self.names = columns.names

    def partitions(self) -> Sequence[InputPartition]:
        """Chunks of the log for batches, one for each partition otherwise."""
        if self.options.view == BY_CHUNK:
            return [TaskPartition(task) for task in plan_tasks(self.options)]
        return [ViewPartition(view) for view in views_of(self.options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """On an executor, which sees the same files. Raises BadOption."""
        if isinstance(partition, ViewPartition):
            yield partition_rows(self.options.view, partition.view).select(self.names)
        elif isinstance(partition, TaskPartition):
            for chunk in partition.task:
                if not isinstance(chunk, FileChunk):
                    raise BadOption(f"view={BY_CHUNK} reads files: {chunk.view} is not here")
                for batch in batch_rows(chunk):
                    yield batch.select(self.names)
