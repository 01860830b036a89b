"""A clean stop, then a power cut: whatever the clean mark vouches for was durable before it."""

import random
from collections.abc import Callable
from uuid import UUID

import pytest

from config.topic import TopicConfig
from protocol.records.markers import ABORT, COMMIT, Marker, build_marker
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.errors import DiskError
from storage.files.layout import SYNCED_MARK
from storage.log.log import Log
from storage.validation.internal_batch import own_batch
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng, SimClock
from tests.support.records.logs import NO_BOUNDS, append, make_durable, records_of

LOG_DIR = "/data"
NOW = 1_700_000_000_000
CONFIG = TopicConfig(
    **NO_BOUNDS, segment_bytes=700, index_interval_bytes=150, horolog_zone_bytes=200
)


def started(fs: SimFileSystem) -> LogManager:
    manager = LogManager(Env(SimClock(NOW), fs, SeededRng(1)), LOG_DIR, lambda topic: CONFIG)
    manager.open_directory("cluster", 1)
    manager.load()
    return manager


class Life:
    """Some logs with transactions, plain records, rolls and writes that fail half way."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.fs = SimFileSystem(clock=SimClock(NOW))
        self.manager = started(self.fs)
        self.sequences: dict[tuple[int, int], int] = {}
        for index in range(2):
            self.manager.create_log("t", index, UUID(int=1), CONFIG)

    def live(self, steps: int) -> None:
        """An abort comes last, into the segment that is still written to."""
        for _ in range(steps):
            log = self.dice.choice(list(self.manager.logs.values()))
            self.dice.choice((self.transact, self.plain, self.plain, self.torn, self.roll))(log)
            if self.dice.random() < 0.3:
                make_durable(log)
        self.transact(self.manager.logs["t", 0], (ABORT,))

    def transact(self, log: Log, ends: tuple[int, ...] = (ABORT, ABORT, COMMIT)) -> None:
        producer = self.dice.randrange(3)
        key = log.partition, producer
        for _ in range(self.dice.randint(1, 3)):
            sequence = self.sequences.get(key, 0)
            self.sequences[key] = sequence + 1
            append(
                log, NOW, producer_id=producer, producer_epoch=0, base_sequence=sequence,
                transactional=True,
            )  # fmt: skip
        marker = own_batch(build_marker(Marker(self.dice.choice(ends), 0), producer, 0, NOW), NOW)
        log.append_own(marker, acks_all=False, leader_epoch=0)

    def plain(self, log: Log) -> None:
        append(log, *[NOW + self.dice.randrange(1000) for _ in range(self.dice.randint(1, 4))])

    def torn(self, log: Log) -> None:
        """A part of it lies behind the log's end until somebody cuts it off."""
        self.fs.inject("write", path=".log", error="enospc")
        self.fs.inject("truncate", path=".log", times=self.dice.randrange(2))
        with pytest.raises(DiskError):
            append(log, NOW, value=bytes(range(200)))
        self.fs._faults.clear()

    def roll(self, log: Log) -> None:
        log.roll()

    def seen_with_a_mark(self, close: Callable[[LogManager], bool]) -> list[SimFileSystem]:
        """What power cuts during the stop leave, as far as the clean mark is among it."""
        marked = []

        def look(call: int) -> None:
            for cut in range(2):
                disk = self.fs.after_crash(call * 31 + cut)
                if disk.exists(MARK):
                    marked.append(disk)

        self.fs.on_call = look
        assert close(self.manager)
        self.fs.on_call = None
        return marked


def files_of(fs: SimFileSystem) -> dict[str, bytes]:
    """Every file of the directory, but those that a start ignores or removes."""
    found = {}
    for folder in fs.list_dir(LOG_DIR):
        path = f"{LOG_DIR}/{folder.name}"
        for entry in fs.list_dir(path) if folder.is_dir else ():
            if entry.name == SYNCED_MARK:
                continue  # read after an unclean stop alone, and never synced
            found[f"{path}/{entry.name}"] = fs.read_bytes(f"{path}/{entry.name}")
        if not folder.is_dir and not folder.name.endswith(".tmp"):
            found[path] = fs.read_bytes(path)
    return found


def told(manager: LogManager) -> list[object]:
    """What consumers and producers would learn."""
    return [
        (
            [(each.offset, each.value, each.timestamp) for each in records_of(log)],
            log.search.aborted(0, log.snapshot.log_end_offset),
            log.snapshot.last_stable_offset,
            sorted((key, entry.epoch) for key, entry in log.producers),
            list(log.epochs.entries),
        )
        for _, log in sorted(manager.logs.items())
    ]


def close_at_once(manager: LogManager) -> bool:
    return manager.close()


def close_in_steps(manager: LogManager) -> bool:
    """As the daemon does with many logs."""
    logs = list(manager.logs.values())
    for step in (manager.sync_logs, manager.write_logs, manager.close_logs):
        step(logs)
    return manager.close()


MARK = f"{LOG_DIR}/.kafka_cleanshutdown"


@pytest.mark.parametrize("close", [close_at_once, close_in_steps])
@pytest.mark.parametrize("seed", range(6))
def test_a_cut_after_the_mark_takes_nothing_that_it_vouches_for(
    seed: int, close: Callable[[LogManager], bool]
) -> None:
    life = Life(seed)
    for part in range(2):
        life.live(25)
        expected = told(life.manager)
        marked = life.seen_with_a_mark(close)
        final = files_of(life.fs)
        for disk in (*marked, *(life.fs.after_crash(cut) for cut in range(20))):
            assert files_of(disk) == final
            manager = started(disk)
            assert (manager.recovered_logs, manager.rebuilt_indexes) == (0, 0), part
            assert told(manager) == expected
        assert any(name.endswith(".txnindex") and data for name, data in final.items())
        life.manager = started(life.fs)


@pytest.mark.parametrize(
    "suffix", [".log", ".index", ".timeindex", ".zones", ".txnindex", ".snapshot", ""]
)
def test_a_sync_that_fails_at_the_stop_leaves_no_mark_or_is_made_up_for(suffix: str) -> None:
    """`suffix` "": the directory's."""
    for skip in range(4):
        life = Life(skip)
        life.live(15)
        expected = told(life.manager)
        operation, path = ("sync", suffix) if suffix else ("sync directory", "/t-")
        life.fs.inject(operation, path=path, skip=skip)
        is_clean = close_in_steps(life.manager)
        for cut in range(10):
            disk = life.fs.after_crash(cut)
            assert is_clean or not disk.exists(MARK)
            if is_clean:
                assert told(started(disk)) == expected, f"{suffix} {skip} {cut}"


@pytest.mark.parametrize("suffix", [".txnindex", ".index", ".timeindex", ".zones", ".snapshot"])
def test_what_a_failed_sync_of_a_closed_segment_lost_is_not_believed(suffix: str) -> None:
    """The recovery point passes it only when its bytes are on the disk."""
    for seed in range(12):
        life = Life(seed)
        life.live(20)
        for log in life.manager.logs.values():
            log.roll()
            life.fs.inject("sync", path=suffix, times=1 + seed % 2)
            for _ in range(3):
                make_durable(log)
            assert log.failed is None
            assert log.durability.recovery_point == log.snapshot.log_end_offset
        life.manager.checkpoint()
        expected = told(life.manager)
        for cut in range(6):
            assert told(started(life.fs.after_crash(cut))) == expected, f"seed {seed}, cut {cut}"


def test_a_name_that_could_not_be_synced_ends_the_log() -> None:
    life = Life(3)
    life.live(20)
    log = life.manager.logs["t", 0]
    log.roll()
    make_durable(log)
    life.plain(log)
    log.roll()
    life.fs.inject("sync directory", path="/t-0")
    with pytest.raises(DiskError):
        make_durable(log)
    assert log.failed is not None
    assert not life.manager.close()
