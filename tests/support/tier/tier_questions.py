"""Questions to a log, each with its name: asked of both twins, they have one answer."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from protocol.records.batch import CONTROL, TRANSACTIONAL
from protocol.records.record import Record, read_records
from protocol.records.scan import BatchRow, scan_batches
from storage.search.search_clock import SearchClock
from storage.search.segment_access import NotInMemory
from tests.support.tier.tier_life import TierLife


class Question(NamedTuple):
    """A call, and its name in a story."""

    name: str
    ask: Callable[[TierLife], Any]


class Wanted(NamedTuple):
    """Offsets, times and the like that one round asks for."""

    offset: int
    later: int
    max_bytes: int
    clock: SearchClock | None
    at: int
    low: int
    high: int

    @classmethod
    def drawn(cls, dice: random.Random, life: TierLife, times: Sequence[int]) -> "Wanted":
        """By chance, from what the log has and from beside it."""
        snapshot = life.log.snapshot
        start, end = snapshot.log_start_offset, snapshot.high_watermark
        offset = dice.randint(start, max(start, end))
        low, high = sorted((_near(dice, times), _near(dice, times)))
        return cls(
            offset,
            dice.randint(offset, max(offset, end)),
            dice.choice((1, 100, 700, 1 << 20)),
            dice.choice((None, *SearchClock)),
            _near(dice, times),
            low,
            high,
        )


def _near(dice: random.Random, times: Sequence[int]) -> int:
    return max(0, dice.choice(times) + dice.choice((-1, 0, 0, 1)))


def questions(wanted: Wanted, *, has_estimates: bool, is_cleaned: bool = False) -> list[Question]:
    """One of each kind. `has_estimates`: arrivals are not asked for. `is_cleaned`: segments end
    elsewhere, and so do fetches.
    """
    offset, later, size = wanted.offset, wanted.later, wanted.max_bytes
    found = [Question("largest time", lambda life: life.log.search.first_with_largest())]
    if is_cleaned:
        found += [
            Question(f"next of {offset}", lambda life: _next_records(life, offset)),
            Question(
                f"committed from {offset} to {later}", lambda life: _committed(life, offset, later)
            ),
        ]
    else:
        found += [
            Question(f"fetch {offset}, {size} bytes", lambda life: life.read(offset, size)),
            Question(
                f"aborted {offset} to {later}", lambda life: life.log.search.aborted(offset, later)
            ),
            Question(
                f"aborted in a fetch of {offset}, {size} bytes",
                lambda life: _aborted_in(life, offset, size),
            ),
        ]
    if has_estimates:
        return found + _by_time(wanted._replace(clock=SearchClock.RECORD))
    return [
        *found,
        *_by_time(wanted),
        Question(f"times at {offset}", lambda life: life.log.search.times_at(offset)),
        Question(f"lag at {offset}", lambda life: life.log.search.lag_at(offset)),
        Question("skew", lambda life: life.log.search.skew()),
    ]


def _by_time(wanted: Wanted) -> list[Question]:
    at, low, high, clock = wanted.at, wanted.low, wanted.high, wanted.clock
    return [
        Question(
            f"by time {at}, {clock}",
            lambda life: life.log.search.first_at_or_after(at, clock=clock),
        ),
        Question(f"by time {at}, {clock}, at once", lambda life: _at_once(life, at, clock)),
        Question(f"between {low} and {high}, {clock}", lambda life: _between(life, wanted)),
    ]


def _batches(life: TierLife, at: int, end: int) -> Iterator[tuple[BatchRow, list[Record]]]:
    while at < end:
        data = memoryview(life.read(at))
        rows = scan_batches(data).batches
        assert rows, f"nothing at {at}"
        for row in rows:
            yield row, read_records(data[row[0] : row[0] + row[5]])
        at = rows[-1][2] + 1


def batches_of(life: TierLife) -> list[tuple[int, int, int]]:
    """Offsets and attributes of all batches. StorageError."""
    snapshot = life.log.snapshot
    found = _batches(life, snapshot.log_start_offset, snapshot.high_watermark)
    return [(row[1], row[2], row[7]) for row, _ in found]


def _next_records(life: TierLife, offset: int) -> object:
    """Those of the next batch that has some."""
    for _, records in _batches(life, offset, life.log.snapshot.high_watermark):
        if found := [each for each in records if each.offset >= offset]:
            return [(each.offset, each.timestamp, each.key, each.value) for each in found]
    return []


def _committed(life: TierLife, offset: int, up_to: int) -> object:
    """Offsets that a consumer of committed data gets, as Kafka's does it."""
    aborted = sorted(life.log.search.aborted(offset, up_to), key=lambda each: each.first_offset)
    open_of: set[int] = set()
    found: list[int] = []
    for row, records in _batches(life, offset, up_to):
        while aborted and aborted[0].first_offset <= row[2]:
            open_of.add(aborted.pop(0).producer_id)
        if row[7] & CONTROL:
            open_of.discard(row[8])
        elif row[8] not in open_of or not row[7] & TRANSACTIONAL:
            found += [each.offset for each in records if offset <= each.offset < up_to]
    return found


def _aborted_in(life: TierLife, offset: int, size: int) -> object:
    """Those that begin within the data: the list may have more, by where the index has entries."""
    data = life.fetched(offset, size)
    if not data.slices:
        return []
    end = max((row[2] for row in scan_batches(data.read()).batches), default=offset)
    found = life.log.search.aborted_in(offset, data)
    return [each for each in found if each.first_offset <= end]


def _at_once(life: TierLife, at: int, clock: SearchClock | None) -> object:
    """Answered from memory, or where waiting is allowed."""
    try:
        return life.log.search.first_at_or_after(at, clock=clock, may_wait=False)
    except NotInMemory:
        return life.log.search.first_at_or_after(at, clock=clock)


def _between(life: TierLife, wanted: Wanted) -> object:
    found = life.log.search.range_between(wanted.low, wanted.high, clock=wanted.clock)
    return found.first_offset, found.last_offset, found.records, found.is_exact
