"""A task as Spark carries it to an executor."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pipeline.sources.chunks import Task
from pipeline.sources.reading import read_task


class TaskPartition(InputPartition):
    """Plain values."""

    def __init__(self, task: Task) -> None:
        """What to read."""
        self.task = task


def read_partition(
    partition: InputPartition | None, columns: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The records of a task. For a plan without tasks Spark makes one up, which has none."""
    return read_task(partition.task if isinstance(partition, TaskPartition) else (), columns)
