"""A log takes over from another leader: the same files, byte for byte, and how far two agree."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from protocol.records.batch import CorruptBatch, patch_offset_and_epoch
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.markers import ABORT, COMMIT, Marker, build_marker
from storage.env import Env
from storage.errors import CorruptLog
from storage.files.layout import DELETED, LOG, OFFSET_INDEX, SNAPSHOT, TIME_INDEX, TXN_INDEX, ZONES
from storage.log.following import (
    EpochRange,
    LogBatch,
    agreed_end,
    append_committed,
    batches_between,
)
from storage.log.log import Log
from storage.search.search_clock import ARRIVAL
from storage.segment.segments import index_of
from storage.validation.dirty_timestamps import TimeRules
from storage.validation.internal_batch import own_batch
from storage.zones.rows import Zone
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng, SimClock
from tests.support.records.logs import LOG_PATH, make_durable, open_log

NOW = 1_700_000_000_000
SMALL: dict[str, Any] = {
    "segment_bytes": 4000,
    "index_interval_bytes": 300,
    "horolog_zone_bytes": 500,
    "message_timestamp_after_max_ms": 3_600_000,
    "horolog_timestamp_policy": "accept",
}
FILES = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX, ZONES, SNAPSHOT)


class Side:
    """One of the two leaders."""

    def __init__(self, clock: SimClock, **settings: Any) -> None:
        self.clock = clock
        self.fs = SimFileSystem(clock=clock)
        self.env = Env(clock, self.fs, SeededRng(1))
        self.log: Log = open_log(self.env, **settings)

    def append(self, batch: bytes | bytearray, epoch: int = 0) -> None:
        self.log.append(memoryview(bytearray(batch)), acks_all=True, leader_epoch=epoch)

    def mark(self, kind: int, producer: int, epoch: int = 0) -> None:
        marker = own_batch(build_marker(Marker(kind, 1), producer, 0, NOW), self.clock.now_ms())
        self.log.append_own(marker, acks_all=True, leader_epoch=epoch)

    def take(self, batches: Sequence[LogBatch]) -> None:
        rules = TimeRules(self.log.config)
        for each in batches:
            append_committed(self.log, each.data, each.arrival_ms, rules)

    def all(self, begin: int = 0, most: int = 1 << 20) -> list[LogBatch]:
        end, found = self.log.snapshot.log_end_offset, list[LogBatch]()
        while begin < end:
            found += batches_between(self.log, begin, end, most)
            begin = found[-1].last_offset + 1
        return found

    def files(self) -> dict[str, bytes]:
        """After a clean stop; another leader has written nothing but what is in them."""
        make_durable(self.log)
        self.log.close()
        names = [each.name for each in self.fs.list_dir(LOG_PATH)]
        assert not [name for name in names if name.endswith(DELETED)]
        return {
            name: self.fs.read_bytes(f"{LOG_PATH}/{name}")
            for name in names
            if name.endswith(FILES) or name == "leader-epoch-checkpoint"
        }


def history(side: Side, dice: random.Random) -> None:
    """All kinds of batches, over several segments and epochs."""
    sequences: dict[int, int] = {}
    for number in range(60):
        side.clock.advance(dice.choice((0, 0, 3, 700, 2000)))
        now, epoch = side.clock.now_ms(), number // 25
        times = [now - dice.choice((0, 50, 86_400_000, -86_400_000)) for _ in range(3)]
        rows = [(at, b"k", b"%d" % number * dice.randrange(1, 60)) for at in times]
        match dice.randrange(4):
            case 0:
                producer = dice.choice((5, 6))
                first = sequences.setdefault(producer, 0)
                sequences[producer] += 3
                side.append(
                    build_batch(
                        rows, producer_id=producer, producer_epoch=0, base_sequence=first,
                        transactional=True,
                    ),
                    epoch,
                )  # fmt: skip
                side.mark(dice.choice((ABORT, COMMIT)), producer, epoch)
            case 1:
                side.append(build_batch(rows, codec=Codec.ZSTD), epoch)
            case 2:
                side.append(build_batch([(-1, None, b"untimed")]), epoch)
            case _:
                side.append(build_batch(rows), epoch)


def zone_of(log: Log, offset: int) -> Zone:
    snapshot = log.snapshot
    number = index_of(snapshot.segments, offset)
    view = log.search.look().at(snapshot.segments[number], snapshot.end_of(number), ARRIVAL)
    return view.zones.zone(view.zones.holding_offset(offset))


class Committing(Side):
    """A leader whose batches another one has soon, some together when `dice` say so."""

    def __init__(self, other: Side, dice: random.Random, alone: float, **settings: Any) -> None:
        super().__init__(SimClock(NOW), **settings)
        self._other = other
        self._dice = dice
        self._alone = alone
        self.arrivals: list[int] = []

    def append(self, batch: bytes | bytearray, epoch: int = 0) -> None:
        super().append(batch, epoch)
        self._appended()

    def mark(self, kind: int, producer: int, epoch: int = 0) -> None:
        super().mark(kind, producer, epoch)
        self._appended()

    def _appended(self) -> None:
        self.arrivals.append(self.clock.now_ms())
        if self._dice.random() < self._alone:
            self.commit()

    def commit(self) -> None:
        taken = self._other.log.snapshot.log_end_offset
        self._other.take(self.all(taken, self._dice.choice((200, 100_000))))


def two_leaders(seed: int, stamp: str, alone: float) -> tuple[Committing, Side]:
    dice = random.Random(seed)
    settings = {**SMALL, "message_timestamp_type": stamp}
    second = Side(SimClock(NOW + 7_000_000), **settings)
    first = Committing(second, dice, alone, **settings)
    history(first, dice)
    first.commit()
    return first, second


@pytest.mark.parametrize("stamp", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("seed", range(10))
def test_the_files_are_those_of_the_other_leader(seed: int, stamp: str) -> None:
    """Batches are committed as they come."""
    first, second = two_leaders(seed, stamp, alone=1.0)
    found, expected = second.files(), first.files()
    assert len([name for name in expected if name.endswith(LOG)]) > 2
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []


@pytest.mark.parametrize("stamp", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("seed", range(10))
def test_of_batches_that_are_committed_together_arrivals_may_be_estimated(
    seed: int, stamp: str
) -> None:
    """Each stays between those of its zone, which is what a search by arrival answers with."""
    first, second = two_leaders(seed, stamp, alone=0.4)
    arrivals = [each.arrival_ms for each in second.all()]
    assert arrivals == sorted(arrivals)
    for batch, arrival in zip(first.all(), arrivals, strict=True):
        zone = zone_of(first.log, batch.base_offset)
        assert zone.first_arrival_ms <= arrival <= zone.last_arrival_ms
    found, expected = second.files(), first.files()
    different = [name for name in expected if found[name] != expected[name]]
    assert [name for name in different if not name.endswith(ZONES)] == []


def test_only_the_next_batch_is_taken() -> None:
    first, second = Side(SimClock(NOW)), Side(SimClock(NOW))
    for number in range(3):
        first.append(build_batch([(NOW + number, None, b"x")]))
    batches = first.all()
    second.take(batches[:1])
    with pytest.raises(CorruptLog, match="offset 2 is to follow 1"):
        append_committed(second.log, batches[2].data, NOW, TimeRules(second.log.config))
    damaged = batches[1].data[:-1] + b"?"
    with pytest.raises(CorruptBatch, match="offset 1 is damaged"):
        append_committed(second.log, damaged, NOW, TimeRules(second.log.config))
    with pytest.raises(CorruptBatch):
        append_committed(second.log, batches[1].data + b"?", NOW, TimeRules(second.log.config))
    assert second.log.snapshot.log_end_offset == 1
    second.take(batches[1:])
    assert second.all() == batches


def test_how_far_two_logs_agree() -> None:
    side = Side(SimClock(NOW))
    for epoch in (1, 1, 1, 3, 3, 4):
        side.append(build_batch([(NOW, None, b"x")]), epoch)

    def agreed(*ranges: tuple[int, int, int]) -> int:
        return agreed_end(side.log, [EpochRange(*each) for each in ranges], 0)

    assert agreed() == 0
    assert agreed((1, 0, 3), (3, 3, 5), (4, 5, 6)) == 6
    assert agreed((1, 0, 3), (3, 3, 5), (4, 5, 9)) == 6
    assert agreed((1, 0, 2)) == 2
    assert agreed((1, 0, 2), (2, 2, 6)) == 2
    assert agreed((1, 0, 5)) == 3, "what it has of epoch 3 was never committed"
    assert agreed((1, 0, 3), (3, 3, 4), (5, 4, 6)) == 4
    assert agreed((2, 0, 6)) == 0
    assert agreed((1, 0, 1), (1, 1, 3), (3, 3, 4), (3, 4, 5), (4, 5, 6), (4, 6, 8)) == 6


def test_an_empty_log_agrees_with_nothing() -> None:
    side = Side(SimClock(NOW))
    assert agreed_end(side.log, [EpochRange(1, 0, 5)], 0) == 0


def test_sequences_that_another_leader_took_are_taken_whatever_is_known_here() -> None:
    """Records between were deleted, and with them what the other one knew: as Kafka's replicas."""
    second = Side(SimClock(NOW))
    for offset, sequence in enumerate((0, 7, 7)):
        records = [(NOW, None, b"x")]
        batch = build_batch(records, producer_id=5, producer_epoch=0, base_sequence=sequence)
        patch_offset_and_epoch(batch, 0, offset, 0)
        append_committed(second.log, bytes(batch), NOW, TimeRules(second.log.config))
    assert second.log.snapshot.log_end_offset == 3


def test_a_marker_without_contents_is_refused_before_a_byte_of_it_is_written() -> None:
    """Compaction leaves such ones, of transactions of which nothing else is left."""
    first, second = Side(SimClock(NOW)), Side(SimClock(NOW))
    rows = [(NOW, b"k", b"1")]
    batch = build_batch(rows, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    first.append(batch)
    second.take(first.all())
    empty = build_batch([], producer_id=5, producer_epoch=0, transactional=True, control=True)
    patch_offset_and_epoch(empty, 0, 1, 0)
    with pytest.raises(CorruptBatch, match="the control batch at offset 1 has no marker"):
        append_committed(second.log, bytes(empty), NOW, TimeRules(second.log.config))
    first.mark(COMMIT, 5)
    second.take(first.all(1))
    assert second.files() == first.files()
