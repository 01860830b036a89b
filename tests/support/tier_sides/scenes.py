"""Topics that are lived on two brokers with a tier: what is written, and what happens later.

Record times are whole hours away from the present, plus some minutes, and limits are half an hour
off: each decision is the same however long a run takes.
"""

import random
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from protocol.records.compression import Codec

HOUR_MS, MINUTE_MS = 3_600_000, 60_000
IN_2055_MS = 2_682_374_400_000
VALUE_BYTES = 180
BATCHES = 24
LOCAL_BYTES = 2000
SETTINGS: Mapping[str, str | None] = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "1500",  # three batches
    "index.interval.bytes": "400",
    "local.retention.bytes": str(LOCAL_BYTES),
    "retention.ms": "-1",
    "segment.ms": str(1000 * 365 * 24 * HOUR_MS),
    "file.delete.delay.ms": "0",
    "message.timestamp.after.max.ms": str(2**63 - 1),
}


class Write(NamedTuple):
    """One batch. `producer`: the transactional id, empty for none."""

    times: tuple[int, ...]
    codec: Codec = Codec.NONE
    producer: str = ""


class End(NamedTuple):
    """End of a producer's transaction."""

    producer: str
    is_commit: bool


class Scene(NamedTuple):
    """One topic of one partition."""

    topic: str
    steps: tuple[Write | End, ...]
    change: Mapping[str, str | None] = {}
    """Settings that are changed in the second part."""
    trims_to: int | None = None
    """Offset of a DeleteRecords in the second part."""
    more: tuple[Write, ...] = ()
    """Written in the second part, after the change."""


def make_scenes(seed: int, now_ms: int) -> list[Scene]:
    """All of them."""
    dice = random.Random(seed)
    rising = tuple(_rising(now_ms))
    disordered = tuple(_disordered(dice, now_ms))
    untimed = tuple(_partly_untimed(now_ms))
    return [
        Scene("rising", rising),
        Scene("disordered", disordered),
        Scene("untimed", untimed),
        Scene("packed", tuple(_packed(dice, now_ms))),
        Scene("transactions", tuple(_transactions(now_ms))),
        Scene("trimmed", rising, trims_to=10),
        Scene("trimmed-disordered", disordered, trims_to=22),
        Scene("trimmed-to-local", rising, trims_to=45),
        Scene("by-bytes", rising, change={"retention.bytes": "6000"}),
        Scene("by-time", rising, change={"retention.ms": str(_hours(12.5))}),
        Scene("stopped", rising, change=_COPIES_STOP, more=rising[:6]),
        Scene("ended", rising, change=_TIER_ENDS),
    ]


_COPIES_STOP = {"remote.log.copy.disable": "true", "local.retention.bytes": "-2"}
_TIER_ENDS = {"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"}


def _hours(count: float) -> int:
    return int(count * HOUR_MS)


def _rising(now_ms: int) -> Iterator[Write]:
    for number in range(BATCHES):
        at = now_ms - _hours(BATCHES - number)
        yield Write((at, at + MINUTE_MS))


def _disordered(dice: random.Random, now_ms: int) -> Iterator[Write]:
    """Late ones, some without a time, some in seconds, negative ones, at last some of 2055."""
    for number in range(BATCHES):
        at = now_ms - _hours(BATCHES + 10 - number + dice.randint(-8, 8))
        odd = (-1, -5, 0, at // 1000) if number < BATCHES // 2 else (-1, 5, IN_2055_MS)
        yield Write((at, dice.choice((at + MINUTE_MS, at - MINUTE_MS, *odd))))


def _partly_untimed(now_ms: int) -> Iterator[Write]:
    """Whole segments have no time."""
    for number, write in enumerate(_rising(now_ms)):
        yield Write((-1, -1)) if number // 6 % 2 else write


def _packed(dice: random.Random, now_ms: int) -> Iterator[Write]:
    codecs = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
    for number in range(BATCHES * 2):
        at = now_ms - _hours(2 * BATCHES + 2 - number)
        times = [at + dice.randint(-90, 90) * MINUTE_MS for _ in range(dice.randint(1, 6))]
        yield Write(tuple(times), codecs[number % 4])


def _transactions(now_ms: int) -> Iterator[Write | End]:
    """Of two producers, mixed with records of none; aborted ones reach over segments."""
    writes = list(_rising(now_ms))
    for number, write in enumerate(writes):
        yield write._replace(producer=("one", "other", "")[number % 3])
        if number % 9 == 8:
            yield End("one", is_commit=number == 17)
        if number % 6 == 5:
            yield End("other", is_commit=number == 11)
    yield End("one", is_commit=True)
