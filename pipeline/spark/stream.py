"""Structured Streaming's face of the source: micro-batches from offset to offset.

Exactly once comes from Spark's checkpoint and from plans that hang on offsets alone: a batch that
is run again reads the same records. State between calls is only what `Trigger.AvailableNow` fixes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pipeline.errors import BadOption
from pipeline.sources.bounds import EVERYTHING
from pipeline.sources.options import LATEST, ReadOptions
from pipeline.sources.partition_view import PartitionView
from pipeline.sources.planning import plan_ranges, refuse_partial, start_of, views_of
from pipeline.sources.settled_views import SettledViews
from pipeline.spark.stream_offsets import (
    Offset,
    begin_of,
    carried,
    limited,
    offset_of,
    places_in,
    position_in,
    ranges_between,
    refuse_missing,
)
from pipeline.spark.task import TaskPartition, arrow_columns, named_as, read_partition


class RecordsStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream of records."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        """Reads nothing yet. BadOption for what a stream cannot have."""
        if options.end != LATEST or options.times.high is not None or options.times.high_of:
            raise BadOption(
                "a stream has no end: endingOffsets and endingTimestamp are for batches"
            )
        self.options = replace(options, is_by_record=False)  # a time says where to begin, no more
        self.columns = arrow_columns(schema)
        self.names = schema.names
        self._target: Offset | None = None
        self._partitions = SettledViews(self.options)

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's names, here and below
        """Begin of the query: latest, unless options say otherwise."""
        views = views_of(self.options)
        refuse_partial(self.options, views)
        starts = {
            (view.topic, view.partition): start_of(self.options, view, LATEST) for view in views
        }
        return offset_of(views, starts)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Limit of a batch, from the options."""
        if self.options.max_offsets is not None:
            return ReadMaxRows(self.options.max_offsets)
        if self.options.max_bytes is not None:
            return ReadMaxBytes(self.options.max_bytes)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Nothing that comes from now on belongs to this run."""
        self._target = self._latest(self._partitions.now())

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """End of the next batch. DataLost."""
        views, fails = self._partitions.now(places_in(start)), self.options.fails_on_loss
        if fails:
            refuse_missing(start, views)
        ranges = []
        for view in views:
            begin = begin_of(start, view, fails_on_loss=fails)
            ranges.append((view, begin, max(begin, self._end_of(view, begin))))
        ends = limited(ranges, self._most_offsets(ranges, limit))
        return carried(start, offset_of(views, ends))

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """For the query's progress: where the topics end."""
        return self._latest(self._partitions.now())

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The tasks of a batch. DataLost."""
        options = self.options
        views = self._partitions.now(places_in(end, start))
        ranges = ranges_between(start, end, views, fails_on_loss=options.fails_on_loss)
        return [TaskPartition(task) for task in plan_ranges(options, ranges, EVERYTHING)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """On an executor."""
        return named_as(read_partition(partition, self.columns), self.names)

    def _end_of(self, view: PartitionView, begin: int) -> int:
        if self._target is None:
            return view.end_offset
        found = position_in(self._target, view)
        return begin if found is None else min(found, view.end_offset)

    def _latest(self, views: Sequence[PartitionView]) -> Offset:
        return offset_of(views, {(view.topic, view.partition): view.end_offset for view in views})

    def _most_offsets(
        self, ranges: Sequence[tuple[PartitionView, int, int]], limit: ReadLimit
    ) -> int:
        """The limit in offsets; bytes count by the average record of the partitions."""
        total = sum(end - begin for _, begin, end in ranges)
        if isinstance(limit, ReadMaxRows):
            return limit.max_rows
        if isinstance(limit, ReadMaxBytes):
            size = sum(view.size_bytes for view, _, _ in ranges)
            count = sum(view.end_offset - view.start_offset for view, _, _ in ranges)
            return max(1, limit.max_bytes * count // size) if size else total
        return total
