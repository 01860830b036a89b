"""From options to chunks: which partitions there are, which of their offsets and times are wanted.

Runs on the driver, with or without Spark. Everything that may fail for the user's sake fails here.
"""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from pipeline.decode.schemas import RECORDS
from pipeline.errors import BadOption, DataLost, NothingThere
from pipeline.sources.bounds import ANY, EVERYTHING, OffsetBounds, Range
from pipeline.sources.chunks import Chunk, Task
from pipeline.sources.file_plan import plan_partition, task_bytes, tasks_of
from pipeline.sources.log_parts import LogPart, parts_of
from pipeline.sources.log_views import views_in
from pipeline.sources.options import EARLIEST, LATEST, Assigned, ReadOptions
from pipeline.sources.partition_view import PartitionView
from pipeline.sources.reading import read_chunk
from pipeline.sources.tier_views import tier_views
from protocol.records.batch import MAX_INT64, MIN_INT64

_OFFSETS = pa.schema([RECORDS.field("offset")])


def plan_tasks(options: ReadOptions, bounds: OffsetBounds = EVERYTHING) -> list[Task]:
    """The tasks of a read from start to end, as the options have it.

    `bounds` prunes further. BadOption, NothingThere, DataLost, BrokerRefused, DiskError.
    """
    views = views_of(options)
    refuse_partial(options, views)
    ranges = [(view, _range_of(options, view)) for view in views]
    return plan_ranges(options, ranges, bounds)


def plan_ranges(
    options: ReadOptions, ranges: Sequence[tuple[PartitionView, Range]], bounds: OffsetBounds
) -> list[Task]:
    """Likewise, with the offsets of each partition given."""
    chunks: list[Chunk] = []
    for view, offsets in ranges:
        chunks += chunks_of(options, view, offsets, bounds)
    most = task_bytes(sum(each.size_bytes for each in chunks), options.min_tasks)
    if any(each.size_bytes > 2 * most for each in chunks):
        chunks = [
            each
            for view, offsets in ranges
            for each in chunks_of(options, view, offsets, bounds, most)
        ]
    return tasks_of(chunks, options.min_tasks)


def chunks_of(
    options: ReadOptions,
    view: PartitionView,
    offsets: Range,
    bounds: OffsetBounds,
    most_bytes: int | None = None,
) -> Sequence[Chunk]:
    """Chunks to read of one partition."""
    times = bounds.times.within(_times_of(options, view)) if options.is_by_record else bounds.times
    within = OffsetBounds(
        bounds.offsets.within(offsets), times, bounds.arrivals, bounds.partitions, bounds.topics
    )
    most = most_bytes or MAX_INT64
    if not view.leader:
        return _file_chunks(options, view, within, most)
    return [
        chunk
        for part in parts_of(options, view, within.offsets)
        for chunk in _part_chunks(options, part, within, most)
    ]


def _part_chunks(
    options: ReadOptions, part: LogPart, bounds: OffsetBounds, most_bytes: int
) -> Sequence[Chunk]:
    within = replace(bounds, offsets=bounds.offsets.within(part.offsets))
    if not part.is_wire:
        return _file_chunks(options, part.view, within, most_bytes)
    from pipeline.sources.wire_plan import wire_chunks  # the messages take a while to load

    return wire_chunks(options, part.view, within, most_bytes)


def _file_chunks(
    options: ReadOptions, view: PartitionView, bounds: OffsetBounds, most_bytes: int
) -> Sequence[Chunk]:
    return plan_partition(
        view,
        bounds,
        is_committed=options.is_committed,
        fails_on_loss=options.fails_on_loss,
        most_bytes=most_bytes,
    )


def refuse_partial(options: ReadOptions, views: Sequence[PartitionView]) -> None:
    """BadOption unless options of single partitions name these and no others.

    As Spark's connector has it: a partition that is left out has no defined start, and one that
    does not exist is a typing mistake.
    """
    there = {(view.topic, view.partition) for view in views}
    for name, offsets in options.by_partition().items():
        given = {(topic, index) for topic, each in offsets.items() for index in each}
        for topic, index in sorted(there - given):
            raise BadOption(
                f"{name} says nothing of {topic}-{index}: it must name every partition that is "
                "read; for offsets -2 is the earliest, -1 the latest"
            )
        for topic, index in sorted(given - there):
            raise BadOption(f"{name} names {topic}-{index}, which is not among what is read")


def views_of(options: ReadOptions) -> list[PartitionView]:
    """The partitions that were asked for, as they stand now. Raises NothingThere."""
    found = _all_views(options)
    views = [view for view in found if options.takes(view.topic, view.partition)]
    known = _one_of_each(views)
    for topic, indexes in (options.assigned or {}).items():
        for index in indexes:
            if (topic, index) not in known:
                raise NothingThere(f"there is no partition {topic}-{index}")
    if not views:
        raise NothingThere(f"no topic is called like {options.pattern!r}")
    return views


def _one_of_each(views: Sequence[PartitionView]) -> set[tuple[str, int]]:
    """Their places. BadOption for a partition in two directories: it would be read twice."""
    seen: dict[tuple[str, int], PartitionView] = {}
    for view in views:
        other = seen.setdefault((view.topic, view.partition), view)
        if other is not view:
            raise BadOption(
                f"{view} is in {other.directory} and in {view.directory}, and each record would be "
                "read twice: name one of these data directories"
            )
    return set(seen)


def _all_views(options: ReadOptions) -> list[PartitionView]:
    if options.bootstrap:
        from pipeline.sources.broker_views import broker_views  # the messages take a while to load

        return broker_views(options)
    if not options.log_dirs:
        return tier_views(options)
    return views_in(
        options.log_dirs,
        options.assigned or options.topics,
        is_committed=options.is_committed,
        is_offline=options.is_offline,
        tier=options.tier,
    )


def start_of(options: ReadOptions, view: PartitionView, usual: int) -> int:
    """The offset at which a read begins, when nothing is left out by single records.

    `usual`: earliest or latest, when the options say nothing.
    """
    low, _ = options.times.bound(view.topic, view.partition)
    if low is not None:
        return _start_by_time(options, view, low)
    return offset_of(options, view, usual if options.start is None else options.start)


def _range_of(options: ReadOptions, view: PartitionView) -> Range:
    """The offsets from start to end, both included."""
    end = offset_of(options, view, options.end)
    if options.is_by_record:
        start = offset_of(options, view, EARLIEST if options.start is None else options.start)
        return Range(start, end - 1)
    start = start_of(options, view, EARLIEST)
    _, high = options.times.bound(view.topic, view.partition)
    found = None if high is None else first_offset_at(options, view, high)
    return Range(start, (end if found is None else min(end, found)) - 1)


def offset_of(options: ReadOptions, view: PartitionView, wanted: int | Assigned) -> int:
    """The offset that `wanted` names in the partition: a number, or earliest or latest.

    DataLost when it is not there any more, or not there yet.
    """
    offset = wanted if isinstance(wanted, int) else wanted[view.topic][view.partition]
    if offset in {EARLIEST, LATEST}:
        return view.start_offset if offset == EARLIEST else view.end_offset
    if view.start_offset <= offset <= view.end_offset:
        return offset
    if options.fails_on_loss:
        raise DataLost(
            f"{view} has offsets from {view.start_offset} to before {view.end_offset}, not "
            f"{offset}; failOnDataLoss=false takes the nearest"
        )
    return min(max(offset, view.start_offset), view.end_offset)


def first_offset_at(options: ReadOptions, view: PartitionView, time_ms: int) -> int | None:
    """The first offset whose record has that time or a later one; None without any."""
    for chunk in chunks_of(options, view, ANY, OffsetBounds(times=Range(low=time_ms))):
        for batch in read_chunk(chunk, _OFFSETS):
            return int(batch.column(0)[0].as_py())
    return None


def _start_by_time(options: ReadOptions, view: PartitionView, low: int) -> int:
    found = first_offset_at(options, view, low)
    if found is None and options.fails_without_start:
        raise NothingThere(
            f"{view} has no record from {low} ms on; startingOffsetsByTimestampStrategy=latest "
            "begins at its end"
        )
    return view.end_offset if found is None else found


def _times_of(options: ReadOptions, view: PartitionView) -> Range:
    low, high = options.times.bound(view.topic, view.partition)
    if low is None and high is None:
        return ANY
    return Range(MIN_INT64 if low is None else low, MAX_INT64 if high is None else high - 1)
