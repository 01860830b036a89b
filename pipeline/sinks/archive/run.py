"""The driver of an archive: plans, has workers write, checks the sums of each round, commits it.

A round is at most so many bytes of log, so that a run that dies loses little work; what it had
committed stays, what it had written is written again. Nothing is remembered outside the tables.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, zip_longest
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from pipeline.engine.engine import Engine
from pipeline.errors import DataLost
from pipeline.sinks.archive.rounds import ArchiveStretch, Rounds
from pipeline.sinks.archive.stored import NOTHING
from pipeline.sinks.archive.values import Commit, Layout, Stream, TableStanding, Unit, joined
from pipeline.sinks.archive.writer import Read, write_unit
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


class ArchiveSource(Protocol):
    """Source of records."""

    def extents(self) -> list[Extent]:
        """The extents as of now."""

    def stretches(self, extent: Extent, first: int) -> Iterator[ArchiveStretch]:
        """The stream from `first` to its end, in order, without a gap."""

    @property
    def read(self) -> Read:
        """Reads a stretch's `work`, in a worker: a function that travels."""


class ArchiveTarget(Protocol):
    """The tables that an archive consists of."""

    layout: Layout

    def standing(self, streams: Iterable[Stream]) -> TableStanding:
        """Next offsets of these streams."""

    def commit(self, commit: Commit) -> int:
        """Make it visible; the number of the commit."""


class Wishes(NamedTuple):
    """Options of the user."""

    round_bytes: int = ROUND_BYTES
    oldest_ms: int = OLDEST_MS
    ahead_ms: int = AHEAD_MS
    value_schema: pa.Schema | None = None
    allows_loss: bool = False
    """Continue after records that retention removed before they were archived."""


class ArchivePlan(NamedTuple):
    """Plan of a run, as the tables and the logs were when it began."""

    begins: Mapping[str, int]
    """Next offset by stream."""
    standing: TableStanding
    stretches: Sequence[ArchiveStretch]
    """Of all streams in turn; those of one stream in order."""

    @property
    def size_bytes(self) -> int:
        """Of log that will be read, about."""
        return sum(each.size_bytes for each in self.stretches)


def planned(source: ArchiveSource, target: ArchiveTarget, wishes: Wishes) -> ArchivePlan:
    """All that there is now and the target has not. DataLost, and what the source raises."""
    extents = source.extents()
    standing = target.standing([each.stream for each in extents])
    begins = {each.stream.key: _begin(each, standing, wishes) for each in extents}
    ways = [source.stretches(each, begins[each.stream.key]) for each in extents]
    turns = chain.from_iterable(zip_longest(*ways))
    return ArchivePlan(begins, standing, [each for each in turns if each is not None])


def run_once(
    source: ArchiveSource,
    target: ArchiveTarget,
    engine: Engine,
    wishes: Wishes,
    progress: Callable[[int], object] = lambda _: None,
    *,
    plan: ArchivePlan | None = None,
) -> Iterator[Commit]:
    """Archive all that there is now, round by round; each round's commit when it counts.

    While a round is committed, the next one is at work. DataLost, CountsDoNotClose, TableChanged,
    and what the source raises.
    """
    plan = plan or planned(source, target, wishes)
    at = dict(plan.begins)
    rounds = Rounds(plan.stretches, wishes.round_bytes)
    units = (
        [_unit(each, target.layout, plan.standing, wishes) for each in stretches]
        for stretches in rounds
    )
    with closing(engine.run(partial(write_unit, read=source.read), units)) as results:
        for done in results:
            progress(rounds.take(done))
            for whole in rounds.whole():
                commit = joined(at, whole)
                target.commit(commit)
                at |= {key: until for key, (_, until) in commit.ranges.items()}
                yield commit


def _begin(extent: Extent, standing: TableStanding, wishes: Wishes) -> int:
    """From which offset to go on. DataLost when it is gone, or was never there."""
    key = extent.stream.key
    begin = standing.begins.get(key)
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


def _unit(stretch: ArchiveStretch, layout: Layout, standing: TableStanding, wishes: Wishes) -> Unit:
    now_ms = time.time_ns() // 1_000_000
    stored = standing.stored.get(stretch.stream.key, NOTHING)
    within = np.searchsorted(stored, [stretch.first, stretch.until])
    schema = wishes.value_schema
    return Unit(
        stretch.stream,
        stretch.first,
        stretch.until,
        stretch.work,
        stored[within[0] : within[1]],
        layout,
        TimeLimits(
            now_ms,
            max(0, now_ms - wishes.oldest_ms),
            min(LAST_DAY_MS, now_ms + wishes.ahead_ms),
        ),
        None if schema is None else schema.serialize().to_pybytes(),
    )
