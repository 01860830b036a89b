"""Records in disorder, and with times that are wrong in each way that clients know, by a seed.

They come in ticks: batches that arrive in one millisecond, and the pause before them. Records are
seconds old when they come, and not in order; whole batches are hours late; batches of bad clients
have records hours late, without a time, with one in seconds, or a negative one. In the second half
some records are of 2055: by record time these are what is found there, but not in the first half.
"""

import random
from collections.abc import Iterator
from typing import NamedTuple

from protocol.records.builder import build_batch
from protocol.records.compression import Codec

HOUR_MS = 3_600_000
IN_2055_MS = 2_682_374_400_000
MOST_BATCHES, MOST_RECORDS, MOST_STEP_MS = 9, 24, 4000
VALUE_BYTES = 1000
LATE_PART, BAD_PART, FUTURE_PART = 0.03, 0.03, 0.01
"""Of the batches."""
OLD_MS = 5000
_CODECS = (Codec.NONE,) * 6 + (Codec.LZ4, Codec.ZSTD)
_NOISE = random.Random(19).randbytes(1 << 18)


class SentBatch(NamedTuple):
    """One batch: times of its records in ms, and its bytes."""

    times: tuple[int, ...]
    data: bytes


class Tick(NamedTuple):
    """Batches that arrive at one time, so many ms behind those before."""

    step_ms: int
    batches: tuple[SentBatch, ...]


def bad_times(seed: int, first_ms: int, size_bytes: int) -> Iterator[Tick]:
    """At least `size_bytes` of batches, of which the first arrive a step after `first_ms`."""
    dice, now_ms, made = random.Random(seed), first_ms, 0
    while made < size_bytes:
        step_ms = dice.choice((1, dice.randint(1, 200), dice.randint(1000, MOST_STEP_MS)))
        now_ms += step_ms
        is_late_half = made > size_bytes // 2
        count = dice.randint(1, MOST_BATCHES)
        batches = tuple(
            _batch(dice, now_ms, has_future=is_late_half and dice.random() < FUTURE_PART)
            for _ in range(count)
        )
        made += sum(len(each.data) for each in batches)
        yield Tick(step_ms, batches)


def _batch(dice: random.Random, now_ms: int, *, has_future: bool) -> SentBatch:
    if dice.random() < LATE_PART:
        now_ms -= dice.randint(1, 20 * HOUR_MS)
    is_bad = has_future or dice.random() < BAD_PART
    time_of = _bad_time if is_bad else _good_time
    times = [time_of(dice, now_ms) for _ in range(dice.randint(1, MOST_RECORDS))]
    if has_future:
        times[dice.randrange(len(times))] = IN_2055_MS + dice.randint(-HOUR_MS, HOUR_MS)
    values = (dice.randrange(len(_NOISE) - VALUE_BYTES) for _ in times)
    rows = [(at, b"k", _NOISE[v : v + VALUE_BYTES]) for at, v in zip(times, values, strict=True)]
    return SentBatch(tuple(times), bytes(build_batch(rows, codec=dice.choice(_CODECS))))


def _good_time(dice: random.Random, now_ms: int) -> int:
    return now_ms - dice.randint(0, OLD_MS)


def _bad_time(dice: random.Random, now_ms: int) -> int:
    hours_late = now_ms - dice.randint(0, 12 * HOUR_MS)
    return dice.choice((now_ms, hours_late, hours_late, -1, -5, 0, now_ms // 1000))
