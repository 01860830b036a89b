"""The driver of an archive: plans a round, has workers write it, checks the sums, commits.

A round is at most so many bytes of log, so that a run that dies loses little work; what it had
committed stays, what it had written is written again. Nothing is remembered outside the tables.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, Protocol

import pyarrow as pa

from pipeline.engines import Engine
from pipeline.errors import DataLost
from pipeline.sinks.archive_values import Commit, Done, Kind, Layout, Offsets, Stream, Unit, joined
from pipeline.sinks.archive_writer import Read, write_unit
from pipeline.transforms.event_time import TimeLimits

ROUND_BYTES = 512 * 1024 * 1024
LAST_DAY_MS = 253_402_300_799_999
"""The end of the year 9999, behind which calendars do not go."""
OLDEST_MS, AHEAD_MS = 3650 * 86_400_000, 86_400_000


class Extent(NamedTuple):
    """A stream and the offsets that it has now: from `start` to before `end`."""

    stream: Stream
    start: int
    end: int


class Stretch(NamedTuple):
    """A part of a stream that one worker reads; `work` is what the source reads it by."""

    stream: Stream
    first: int
    until: int
    size_bytes: int
    work: object


class Source(Protocol):
    """Where records come from."""

    def extents(self) -> list[Extent]:
        """What there is now."""

    def stretches(self, extent: Extent, first: int) -> Iterator[Stretch]:
        """The stream from `first` to its end, in order, without a gap."""

    @property
    def read(self) -> Read:
        """Reads a stretch's `work`, in a worker: a function that travels."""


class Target(Protocol):
    """The tables that an archive consists of."""

    layout: Layout

    def offsets(self, streams: Iterable[Stream]) -> Offsets:
        """Where to go on with these streams."""

    def commit(self, commit: Commit) -> int:
        """Make it visible; the number of the commit."""


class Wishes(NamedTuple):
    """What the user may choose."""

    round_bytes: int = ROUND_BYTES
    oldest_ms: int = OLDEST_MS
    ahead_ms: int = AHEAD_MS
    value_schema: pa.Schema | None = None
    allows_loss: bool = False
    """Whether to go on behind records that retention took before they were archived."""


def run_once(
    source: Source,
    target: Target,
    engine: Engine,
    wishes: Wishes,
    progress: Callable[[int], object] = lambda _: None,
) -> Iterator[Commit]:
    """Archive all that there is now, round by round; each round's commit when it counts.

    DataLost, CountsDoNotClose, TableChanged, and what the source raises.
    """
    extents = source.extents()
    streams = [each.stream for each in extents]
    offsets = target.offsets(streams)
    at = {each.stream.key: _begin(each, offsets, wishes) for each in extents}
    for stretches in _rounds(source, extents, at.copy(), wishes.round_bytes):
        units = [_unit(each, target.layout, offsets, wishes) for each in stretches]
        sizes = {(each.stream.key, each.first): each.size_bytes for each in stretches}
        done: list[Done] = []
        for each in engine.run(partial(write_unit, read=source.read), units):
            done.append(each)
            progress(sizes[each.key, each.first])
        commit = joined(at, done)
        target.commit(commit)
        at |= {key: until for key, (_, until) in commit.ranges.items()}
        yield commit
        offsets = target.offsets(streams)


def waiting_bytes(source: Source, target: Target) -> int:
    """How much there is to archive, about."""
    extents = source.extents()
    known = target.offsets(each.stream for each in extents)[Kind.RECORDS]
    return sum(
        stretch.size_bytes
        for each in extents
        for stretch in source.stretches(each, max(each.start, known.get(each.stream.key, 0)))
    )


def _begin(extent: Extent, offsets: Offsets, wishes: Wishes) -> int:
    """From which offset to go on. DataLost when it is gone, or was never there."""
    key = extent.stream.key
    begin = offsets[Kind.RECORDS].get(key)
    if begin is None:
        return extent.start
    if begin > extent.end:
        raise DataLost(
            f"{key}: archived up to {begin}, but the log ends at {extent.end}: it was cut back, or "
            "restored from an older copy"
        )
    if begin < extent.start:
        if not wishes.allows_loss:
            raise DataLost(
                f"{key}: archived up to {begin}, but the log begins at {extent.start}: retention "
                "was quicker; --allow-loss goes on from there"
            )
        return extent.start
    return begin


def _rounds(
    source: Source, extents: Iterable[Extent], begins: Mapping[str, int], budget_bytes: int
) -> Iterator[list[Stretch]]:
    """Stretches of all streams in turn, as many at a time as the budget allows; one at the least.

    Each stream is planned once.
    """
    ways = deque(source.stretches(each, begins[each.stream.key]) for each in extents)
    found: list[Stretch] = []
    used = 0
    while ways:
        stretch = next(ways[0], None)
        if stretch is None:
            ways.popleft()
            continue
        if found and used + stretch.size_bytes > budget_bytes:
            yield found
            found, used = [], 0
        found.append(stretch)
        used += stretch.size_bytes
        ways.rotate(-1)
    if found:
        yield found


def _unit(stretch: Stretch, layout: Layout, offsets: Offsets, wishes: Wishes) -> Unit:
    now_ms = time.time_ns() // 1_000_000
    key = stretch.stream.key
    schema = wishes.value_schema
    return Unit(
        stretch.stream,
        stretch.first,
        stretch.until,
        stretch.work,
        {kind: offsets[kind][key] for kind in Kind if key in offsets[kind]},
        layout,
        TimeLimits(
            now_ms,
            max(0, now_ms - wishes.oldest_ms),
            min(LAST_DAY_MS, now_ms + wishes.ahead_ms),
        ),
        None if schema is None else schema.serialize().to_pybytes(),
    )
