"""A task as Spark carries it to an executor, and the columns that it is asked for."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pipeline.decode.schemas import ALL_COLUMNS
from pipeline.errors import BadOption
from pipeline.sources.chunks import Task
from pipeline.sources.reading import read_task


class TaskPartition(InputPartition):
    """Plain values."""

    def __init__(self, task: Task) -> None:
        """`task`: the chunks to read."""
        self.task = task


def read_partition(
    partition: InputPartition | None, columns: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The records of a task. For a plan without tasks Spark makes one up, which has none."""
    return read_task(partition.task if isinstance(partition, TaskPartition) else (), columns)


def named_as(batches: Iterator[pa.RecordBatch], names: list[str]) -> Iterator[pa.RecordBatch]:
    """The columns under the names that the user wrote: Spark tells upper from lower case here."""
    return (batch.rename_columns(names) for batch in batches)


def arrow_columns(schema: StructType) -> pa.Schema:
    """The columns of a schema as the decoder wants them; BadOption for one that we have not.

    Names as in `schemas.ALL_COLUMNS`, upper and lower case alike; types as they are there.
    """
    known = {field.name.lower(): field for field in ALL_COLUMNS}
    wanted = []
    for field in to_arrow_schema(schema, timezone="UTC"):
        ours = known.get(field.name.lower())
        if ours is None or ours.type != field.type:
            names = ", ".join(each.name for each in ALL_COLUMNS)
            what = "is no column" if ours is None else f"is {ours.type}, not {field.type}:"
            raise BadOption(f"{field.name} {what} of the source: {names}")
        wanted.append(ours)
    return pa.schema(wanted)
