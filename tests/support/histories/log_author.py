"""Makes up histories of a partition from a seed, and lives them in `LogHistory`."""

import random
from collections.abc import Callable, Iterator
from typing import Any

from protocol.records.compression import Codec
from tests.support.histories.log_history import Identity, LogHistory
from tests.support.histories.log_twins import NOW

STEPS = 26
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
YEAR_MS = 365 * DAY_MS
INT64_MAX, INT64_MIN = 2**63 - 1, -(2**63)
AD_2106 = 4_300_000_000_000
CLOCK_STEPS = (HOUR_MS, 7 * DAY_MS, 10 * YEAR_MS)

CHOICES: dict[str, tuple[Any, ...]] = {
    "message_timestamp_type": ("CreateTime",) * 4 + ("LogAppendTime",),
    "message_timestamp_before_max_ms": (INT64_MAX,) * 4 + (5000, DAY_MS),
    "message_timestamp_after_max_ms": (INT64_MAX,) * 3 + (HOUR_MS, 0),
    "horolog_timestamp_policy": (
        *("reject",) * 3,
        *("accept", "clamp", "restamp", "quarantine"),
    ),
    "cleanup_policy": (
        *(frozenset({"delete"}),) * 6,
        frozenset({"compact"}),
        frozenset({"compact", "delete"}),
        frozenset(),
    ),
    "compression_type": ("producer",) * 6 + ("uncompressed", "gzip", "snappy", "lz4", "zstd"),
    "retention_ms": (-1, -1, 0, 100, 3000, DAY_MS),
    "retention_bytes": (-1, -1, -1, -1, 0, 700, 2500),
    "horolog_retention_clock": ("record", "arrival", "earlier", "later"),
    "horolog_retention_min_stay_ms": (0, 0, 0, 1500, DAY_MS),
    "horolog_retention_before_timestamp": (-1, -1, -1, 0, NOW + 1000, NOW + DAY_MS),
    "segment_ms": (INT64_MAX, 1, 4000, 4000, 60_000, DAY_MS),
    "segment_jitter_ms": (0, 0, 0, 3000),
    "segment_bytes": (600, 1200, 1200, 2500, 1 << 20),
    "index_interval_bytes": (0, 1, 100, 400, 4096),
    "horolog_time_index_entry": ("max", "max", "next"),
    "horolog_roll_min_interval_ms": (0, 0, 1000, 10_000),
}
AT_BIRTH: dict[str, tuple[Any, ...]] = {
    "segment_index_bytes": (36, 60, 10_485_760, 10_485_760),
    "horolog_zone_bytes": (4096, 65_536),
    "horolog_zone_ms": (1, 1000),
}


class Author:
    """One history. What comes next hangs on the seed alone."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        dice = self.dice
        choices = {**CHOICES, **AT_BIRTH}
        self.history = LogHistory(
            seed, **{name: dice.choice(values) for name, values in choices.items()}
        )
        self.codecs = dice.choice(((Codec.NONE,), (*(Codec.NONE,) * 4, *Codec)))
        self.times = _times(dice, self.history)
        self.idempotence = dice.choice((0.0, 0.2, 0.7))
        self.sequences = {1: (0, dice.choice((0, 2**31 - 3))), 2: (0, 0)}
        self.last: dict[int, tuple[Identity, int]] = {}
        self.story: list[str] = []
        self.steps: tuple[tuple[Callable[[], None], int], ...] = (
            (self.append, 55),
            (self.wait, 14),
            (self.sync, 8),
            (self.retain, 10),
            (self.tick, 6),
            (self.alter, 6),
            (self.delete_records, 4),
            (self.checkpoint, 2),
            (self.restart, 4),
            (self.kill, 3),
            (self.cut_power, 3),
            (self.step_clock, 2),
        )

    def live(self, steps: int = STEPS) -> None:
        """So many steps, each compared; everything at the end."""
        actions = [action for action, _ in self.steps]
        weights = [weight for _, weight in self.steps]
        for action in self.dice.choices(actions, weights, k=steps):
            self.story.append(f"{action.__name__}()")
            action()
            if self.history.is_over:
                return
            self.history.check(self.probes(3))
        self.history.check_all()

    def probes(self, count: int) -> list[int]:
        """Times worth asking for."""
        times = [row.at for row in self.history.model.rows()] or [NOW]
        dice = self.dice
        wanted = [dice.choice(times) + dice.choice((-1, 0, 0, 1)) for _ in range(count)]
        return [max(0, min(at, INT64_MAX)) for at in (*wanted, dice.choice((0, NOW, AD_2106)))]

    def _tell(self, *what: object) -> None:
        self.story[-1] = f"{self.story[-1].removesuffix('()')}{what}"

    # --- steps ---

    def append(self) -> None:
        dice = self.dice
        times = [next(self.times) for _ in range(dice.choice((1, 1, 1, 2, 5)))]
        times = [at if -(2**63) <= at - times[0] < 2**63 else times[0] for at in times]
        identity = None
        if dice.random() < self.idempotence:
            identity, count = self._identity(len(times))
            times = (times * count)[:count]
        how = {
            "codec": dice.choice(self.codecs),
            "size": dice.choice((0, 10, 10, 200)),
            "keyless": [i for i in range(len(times)) if dice.random() < 0.02],
            "identity": identity,
            "acks_all": dice.random() < 0.3,
        }
        self._tell(times, how)
        self.history.append(times, **how)

    def _identity(self, count: int) -> tuple[Identity, int]:
        """A producer's next batch; sometimes a resend, a gap, a new or an old epoch."""
        dice, producer_id = self.dice, self.dice.choice((1, 2))
        if producer_id in self.last and dice.random() < 0.2:
            return self.last[producer_id]
        epoch, sequence = self.sequences[producer_id]
        roll = dice.random()
        if roll < 0.05:
            return (producer_id, epoch, (sequence + 3) % 2**31), count
        if roll < 0.1 and epoch:
            return (producer_id, epoch - 1, sequence), count
        if roll < 0.15:
            epoch, sequence = epoch + 1, dice.choice((0, 0, 4))
        identity = producer_id, epoch, sequence
        self.last[producer_id] = identity, count
        self.sequences[producer_id] = epoch, (sequence + count) % 2**31
        return identity, count

    def wait(self) -> None:
        ms = self.dice.choice((1, 99, 700, 1500, 5000, 20_000, HOUR_MS))
        self._tell(ms)
        self.history.wait(ms)

    def sync(self) -> None:
        self.history.sync()

    def retain(self) -> None:
        self.history.retain()

    def tick(self) -> None:
        self.history.tick()

    def checkpoint(self) -> None:
        self.history.checkpoint()

    def alter(self) -> None:
        names = self.dice.sample(list(CHOICES), k=2)
        changes = {name: self.dice.choice(CHOICES[name]) for name in names}
        self._tell(changes)
        self.history.alter(**changes)

    def delete_records(self) -> None:
        end = self.history.model.end
        before = self.dice.choice((-1, end, end + 1, -2, *range(0, end, 3)))
        self._tell(before)
        self.history.delete_records(before)

    def restart(self) -> None:
        self.history.restart()

    def kill(self) -> None:
        self.history.kill()

    def cut_power(self) -> None:
        seed = self.dice.randrange(10**9)
        self._tell(seed)
        self.history.cut_power(seed)

    def step_clock(self) -> None:
        dice, now_ms = self.dice, self.history.clock.now_ms()
        to = (1000, AD_2106, NOW)
        steps = [*CLOCK_STEPS, *(-each for each in CLOCK_STEPS), 900, -900, -20_000]
        ms = max(1000 - now_ms, dice.choice((*steps, *(each - now_ms for each in to))))
        self._tell(ms)
        self.history.step_clock(ms)
        if dice.random() < 0.5:
            self.history.wait(self.dice.choice((599_000, 601_000)))


def _times(dice: random.Random, history: LogHistory) -> Iterator[int]:
    """An endless run of record times of one character."""
    kinds = ("live", "live", "shuffled", "few", "dirty", "untimed", "falling", "mixed")
    character, turn = dice.choice(kinds), 0
    while True:
        turn += 1
        now = history.clock.now_ms()
        match character:
            case "live":
                yield now - dice.choice((0, 0, 1, 50))
            case "shuffled":
                yield now + dice.randint(-5000, 5000)
            case "few":
                yield NOW + dice.randint(0, 3)
            case "falling":
                yield NOW - turn * 900
            case "untimed":
                yield dice.choice((-1, -1, -1, now))
            case "dirty":
                yield dice.choice((*(now,) * 5, now + 30 * YEAR_MS, now // 1000, 0, now * 1000))
            case _:
                wild = (INT64_MAX, 2**62, -2, INT64_MIN, -DAY_MS, 5, now - DAY_MS, now + DAY_MS)
                yield dice.choice((-1, now, now, now, dice.choice(wild)))
