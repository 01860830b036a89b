"""Seeded histories of topics, to be lived by several brokers at once and compared.

A history is a topic's settings and what happens to it, step by step: batches (sound and unsound),
changes of settings, DeleteRecords, a retention limit. `make_history` gives the same one for the
same seed, number and present time.

Record times are whole hours away from the present, plus at most a minute, and every limit is half
an hour off: so each decision is the same however long the run takes and whichever clock is asked.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from protocol.records.compression import Codec
from tests.support.histories.history_batches import FAULTS, Write

HOUR_MS = 3_600_000
HALF_AN_HOUR_MS = HOUR_MS // 2
MINUTE_MS = 60_000
REMEMBERED_HOURS = 22
"""And a half: Kafka forgets a producer whose last batch has a record time a day old, at a start."""
STEPS = (9, 7, 5)  # of each phase; a restart is between
ALTERS_AT = 4  # the step of a phase before which settings may change
INT64_MAX = 2**63 - 1
VERSIONS = (9, 11, 3, 13, 8, 7, 12, 5, 10, 4, 6)  # of Produce, one for each step in turn
PACKED_ANEW = ("gzip", "snappy", "lz4", "zstd")

Settings = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class Alter:
    """New settings for the topic; None takes one away."""

    settings: Settings


@dataclass(frozen=True, slots=True)
class Trim:
    """DeleteRecords up to that share of the log, or to a literal offset."""

    share: float = 0.0
    offset: int | None = None

    def offset_in(self, start: int, end: int) -> int:
        """The offset that is asked for in a log from `start` to `end`."""
        return self.offset if self.offset is not None else start + round((end - start) * self.share)


Step = Write | Alter | Trim


@dataclass(frozen=True, slots=True)
class History:
    """History of one topic. `phases` holds a step, or None, for each step of each phase."""

    number: int
    settings: Settings
    limits: Settings
    """Retention after the second phase."""
    phases: tuple[tuple[Step | None, ...], ...]

    @property
    def topic(self) -> str:
        """Its topic's name."""
        return f"history-{self.number}"

    @property
    def is_packed_anew(self) -> bool:
        """True when the broker compresses: the bytes then depend on its libraries."""
        return self.settings.get("compression.type") in PACKED_ANEW

    @property
    def has_producers(self) -> bool:
        """True when anything in it is idempotent."""
        writes = (each for phase in self.phases for each in phase if isinstance(each, Write))
        return any(each.producer for each in writes)

    def __str__(self) -> str:
        """All of it, a line for each step."""
        lines = [f"history {self.number}", f"  settings {self.settings}", f"  limits {self.limits}"]
        for phase, steps in enumerate(self.phases, 1):
            lines += [f"  {phase}.{index} {step}" for index, step in enumerate(steps)]
        return "\n".join(lines)


def version_of_step(phase: int, index: int) -> int:
    """The version of Produce that all histories use in a step."""
    return VERSIONS[(sum(STEPS[: phase - 1]) + index) % len(VERSIONS)]


def make_history(seed: int, number: int, now_ms: int) -> History:
    """History `number` of that seed."""
    dice = random.Random(f"{seed}/{number}")
    settings = _settings(dice)
    author = _Author(dice, now_ms, settings)
    phases = tuple(
        tuple(author.step(phase, index) for index in range(count))
        for phase, count in enumerate(STEPS, 1)
    )
    limits = _limits(dice, sizes_count=settings["compression.type"] not in PACKED_ANEW)
    return History(number, settings, limits, phases)


def _settings(dice: random.Random) -> Settings:
    choices: dict[str, tuple[str | None, ...]] = {
        "internal.segment.bytes": (None, "600", "600", "1500", "1500", "4000"),
        "index.interval.bytes": (None, "0", "1", "100", "400", "1000"),
        "segment.index.bytes": (None, None, None, "12", "24", "36", "60", "120"),
        "segment.ms": (None, None, _hours(25), _hours(60), _hours(720)),
        "message.timestamp.type": (None, None, "CreateTime", "LogAppendTime"),
        "message.timestamp.before.max.ms": (None, None, None, _hours(30), _hours(240)),
        "message.timestamp.after.max.ms": (None, None, _hours(1), _hours(240), str(INT64_MAX)),
        "compression.type": ("producer",) * 5 + ("uncompressed", dice.choice(PACKED_ANEW)),
        "max.message.bytes": (None,) * 5 + ("400", "1200"),
        "cleanup.policy": (None,) * 9 + ("compact", "compact,delete", "delete"),
    }
    chosen = {key: dice.choice(values) for key, values in choices.items()}
    if chosen["compression.type"] in PACKED_ANEW:  # sizes must not decide anything
        for key in ("internal.segment.bytes", "segment.index.bytes", "max.message.bytes"):
            chosen[key] = None
        chosen["index.interval.bytes"] = "1000000000"
    return {key: value for key, value in chosen.items() if value is not None}


def _limits(dice: random.Random, *, sizes_count: bool) -> Settings:
    sizes = ("-1", "-1", "-1", "0", *(("700", "3000", "9000") if sizes_count else ()))
    return {
        "retention.ms": dice.choice(("-1", "1", "1", _hours(30), _hours(100), _hours(300))),
        "retention.bytes": dice.choice(sizes),
    }


def _hours(count: int) -> str:
    """So many hours and a half, in milliseconds: between the hours that records carry."""
    return str(count * HOUR_MS + HALF_AN_HOUR_MS)


@dataclass(slots=True)
class _Producer:
    """A producer with sequence numbers, as it believes it stands."""

    id: int
    epoch: int = 0
    next: int = 0
    sent: list[Write] = field(default_factory=list)


class _Author:
    """Makes up the steps of one history.

    Three things are kept apart. Where the broker packs batches again, no time is below -1 and
    offsets are in order: Kafka fails with an unexpected error, or renumbers the records. Where it
    may stamp them, offsets are in order too. A producer of which Kafka may forget a batch at a
    start, for its record times are old, does not go on after it.
    """

    def __init__(self, dice: random.Random, now_ms: int, settings: Settings) -> None:
        self._dice = dice
        self._present = now_ms - HOUR_MS
        self._packs = settings["compression.type"] != "producer"
        self._sizes_count = settings["compression.type"] not in PACKED_ANEW
        # Kafka cannot start once an index holds more than it may; one with a single slot (12 bytes)
        # is full while it is empty, and then rebuilt.
        self._index_may_grow = self._sizes_count and settings.get("segment.index.bytes") != "12"
        self._stamps = settings.get("message.timestamp.type") == "LogAppendTime"
        self._stamps = self._stamps or dice.random() < 0.5
        self._times = _times(dice, now_ms)
        self._remembered_from = now_ms - REMEMBERED_HOURS * HOUR_MS - HALF_AN_HOUR_MS
        self._codecs = dice.choice(((Codec.NONE,), tuple(Codec), (*(Codec.NONE,) * 3, *Codec)))
        self._wildness = dice.choice((0.0, 0.05, 0.2))
        start = dice.choice((0, 0, 0, 2**31 - 4))
        self._producers = [_Producer(number, 0, start) for number in (4001, 4002)]
        self._idempotence = dice.choice((0.0, 0.3, 0.8))

    def step(self, phase: int, index: int) -> Step | None:
        """The next step."""
        if phase > 1 and index == 0:
            self._producers = [self._after_start(each) for each in self._producers]
        roll = self._dice.random()
        if index == ALTERS_AT and roll < 0.4:
            return Alter(self._altered())
        if index and roll < 0.06:
            return self._trim()
        if roll < 0.1:
            return None
        return self._write()

    def _after_start(self, producer: _Producer) -> _Producer:
        """The producer that goes on after a start: another one where it may be forgotten."""
        if all(max(write.times) >= self._remembered_from for write in producer.sent):
            return producer
        return _Producer(producer.id + len(self._producers), 0, producer.next)

    def _altered(self) -> Settings:
        choices: list[tuple[str, tuple[str | None, ...]]] = [
            ("message.timestamp.before.max.ms", (_hours(30), None)),
            ("message.timestamp.after.max.ms", (_hours(1), str(INT64_MAX), None)),
            ("segment.ms", (_hours(25), _hours(60), None)),
        ]
        if self._stamps:
            choices += [("message.timestamp.type", ("CreateTime", "LogAppendTime", None))] * 3
        if self._packs and self._sizes_count:
            choices.append(("compression.type", ("uncompressed", None)))
        if self._sizes_count:
            choices += [
                ("max.message.bytes", ("400", "1200", None)),
                ("index.interval.bytes", ("0", "400")),
            ]
        if self._index_may_grow:
            choices.append(("segment.index.bytes", ("1000", None)))
        key, values = self._dice.choice(choices)
        return {key: self._dice.choice(values)}

    def _trim(self) -> Trim:
        if self._dice.random() < 0.15:
            return Trim(offset=self._dice.choice((-1, -2, 10**6, 0)))
        return Trim(share=round(self._dice.random(), 2))

    def _write(self) -> Write:
        dice = self._dice
        if dice.random() < self._idempotence:
            return self._idempotent_write()
        fault = dice.choice(FAULTS) if dice.random() < self._wildness else ""
        early = fault == "other base time" and self._packs
        return self._plain_write("" if early else fault)

    def _plain_write(self, fault: str = "", producer: tuple[int, int, int] | None = None) -> Write:
        dice = self._dice
        count = dice.choice((1, 1, 2, 3, 6, 40))
        codec = Codec.NONE if fault == "left over" else dice.choice(self._codecs)
        return Write(
            times=self._some_times(count, fault),
            codec=codec,
            value_bytes=dice.choice((0, 10, 10, 90, 300 if count < 10 else 20)),
            producer=producer,
            fault=fault,
            keyless=dice.random() < 0.03,
        )

    def _some_times(self, count: int, fault: str) -> tuple[int, ...]:
        if fault == "claims append time":  # Kafka judges all of them by the header's largest
            return (self._dice.choice((-1, self._present)),) * count
        least = -1 if self._packs else -(2**63)
        return tuple(max(least, next(self._times)) for _ in range(count))

    def _idempotent_write(self) -> Write:
        dice, producer = self._dice, self._dice.choice(self._producers)
        roll = dice.random()
        if producer.sent and roll < 0.25:
            return dice.choice(producer.sent[-7:])
        epoch, sequence = producer.epoch, producer.next
        if roll < 0.30:
            sequence = (sequence + dice.choice((1, 3, -1))) % 2**31
        elif roll < 0.35:
            epoch, sequence = epoch + 1, dice.choice((0, 0, sequence, 5))
        elif roll < 0.38:
            epoch -= 1
        write = self._plain_write(producer=(producer.id, max(0, epoch), sequence))
        if epoch >= producer.epoch:
            producer.epoch = epoch
            producer.next = (sequence + len(write.times)) % 2**31
        producer.sent.append(write)
        return write


def _times(dice: random.Random, now_ms: int) -> Iterator[int]:
    """An endless run of record times of one character."""
    character = dice.choice((
        "rising", "rising", "shuffled", "few", "dirty", "untimed", "falling", "mixed", "ahead",
    ))  # fmt: skip
    hours = -dice.choice((30, 100, 400))
    while True:
        hours = min(-1, hours + dice.choice((0, 0, 0, 1, 1, 9)))
        yield _time(dice, character, now_ms, hours)


def _time(dice: random.Random, character: str, now_ms: int, hours: int) -> int:
    def at(hour: int) -> int:
        """An hour that is neither the present one nor the next, which is Kafka's bound."""
        hour = min(hour, -1) if hour < 2 else hour
        return now_ms + hour * HOUR_MS + dice.randrange(MINUTE_MS)

    present = at(-1)
    dirty = (0, 1, -1, present // 1000, present * 1000, present * 10**6, at(24 * 365 * 30))
    match character:
        case "rising":
            return at(hours)
        case "shuffled":
            return at(hours + dice.randint(-60, 60))
        case "few":
            return now_ms - 20 * HOUR_MS + dice.randrange(3)
        case "falling":
            return at(-430 - hours)
        case "dirty":
            return dice.choice((*(at(hours) for _ in range(5)), dice.choice(dirty)))
        case "untimed":
            return dice.choice((-1, -1, -1, -1, at(hours)))
        case "ahead":
            return at(hours + dice.choice((0, 0, 0, 200, 500)))
        case _:
            extremes = (INT64_MAX, 2**62, -2, -(2**62), -HOUR_MS)
            return dice.choice((-1, at(hours), at(hours), at(-50), *dirty, dice.choice(extremes)))
