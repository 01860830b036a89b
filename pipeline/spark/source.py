"""Spark's face of the sources: `format("horolog")`. Planning and reading are elsewhere.

Spark calls these classes in Python processes of its own: planning on the driver's machine, reading
on the executors'. They hold options and plans, and nothing that is open.

A query's filters reach a reader only with the option `pushFilters`. Spark 4.3 keeps the plan that
it got for the filters of one query for all later ones of the same `load()`, also for those without
a filter: `df.where(...)` and then `df.count()` would count too little. So whoever sets the option
takes a `load()` for each query; the options of times and offsets prune as well, and always.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    Filter,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from pipeline.decode.schemas import VIEWS, records_schema
from pipeline.errors import BadOption
from pipeline.sources.bounds import EVERYTHING
from pipeline.sources.options import RECORDS_VIEW, ReadOptions, parse
from pipeline.sources.planning import plan_tasks
from pipeline.spark.pushdown import narrowed
from pipeline.spark.stream import RecordsStream
from pipeline.spark.task import TaskPartition, arrow_columns, named_as, read_partition
from pipeline.spark.views import ViewReader


class HorologSource(DataSource):
    """Records of topics, from log directories or from a broker."""

    @classmethod
    def name(cls) -> str:
        """As in `spark.read.format("horolog")`."""
        return "horolog"

    def schema(self) -> StructType:
        """The columns that the options ask for, unless the user narrows them by `.schema(...)`."""
        options = parse(self.options)
        if options.view != RECORDS_VIEW:
            return from_arrow_schema(VIEWS[options.view])
        return from_arrow_schema(
            records_schema(headers=options.has_headers, metadata=options.has_metadata)
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read."""
        options = parse(self.options)
        if options.view != RECORDS_VIEW:
            return ViewReader(options, to_arrow_schema(schema, timezone="UTC"))
        reader = PushingReader if options.pushes_filters else RecordsReader
        return reader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """A stream. Raises BadOption."""
        options = parse(self.options)
        if options.view != RECORDS_VIEW:
            raise BadOption(f"view={options.view} is for batch reads; a stream has records")
        return RecordsStream(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch write: records are added, a topic is never replaced. Raises BadOption."""
        if overwrite:
            raise BadOption('a topic cannot be overwritten: use mode("append")')
        from pipeline.spark.topic_sink import TopicSink, sink_options

        return TopicSink(sink_options(self.options, schema.names))

    def streamWriter(  # noqa: N802 - Spark's
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002
    ) -> DataSourceStreamWriter:
        """The write of a stream."""
        from pipeline.spark.topic_sink import TopicStreamSink, sink_options

        return TopicStreamSink(sink_options(self.options, schema.names))


class RecordsReader(DataSourceReader):
    """A batch read of records."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        """Reads nothing yet."""
        self.options = options
        self.columns = arrow_columns(schema)
        self.names = schema.names
        self.bounds = EVERYTHING

    def partitions(self) -> Sequence[InputPartition]:
        """The plan, made on the driver."""
        return [TaskPartition(task) for task in plan_tasks(self.options, self.bounds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """On an executor."""
        return named_as(read_partition(partition, self.columns), self.names)


class PushingReader(RecordsReader):
    """A batch read that prunes by the query's filters as well."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take note of what can prune; Spark applies all of them again."""
        self.bounds = narrowed(self.bounds, filters)
        return filters
