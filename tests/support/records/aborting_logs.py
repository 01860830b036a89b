"""Compacted logs of interleaved transactions, most of them aborted, and what their readers get.

`live`: such a log loses its power at every call while runs of the cleaner come to their end or are
given up. Compaction changes nothing for whoever wants the last committed value of each key.
"""

import random
from typing import Any

from protocol.records.batch import iter_headers
from protocol.records.markers import ABORT, COMMIT, Marker, build_marker
from protocol.records.record import read_records
from storage.cleaner.cleanable_logs import CleanerOffsets
from storage.cleaner.cleaner import Cleaning
from storage.env import Env
from storage.files.layout import (
    HIGH_WATERMARKS_FILE,
    LOG_START_OFFSETS_FILE,
    RECOVERY_POINTS_FILE,
)
from storage.log.log import Log
from storage.recovery.loading import LoadHints
from storage.validation.internal_batch import own_batch
from storage.verify.directory import DirectorySurvey, verify_partition
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng, SimClock
from tests.support.records.cleaning import COMPACT, MEMORY, verdict
from tests.support.records.logs import UNCLEAN, append, make_durable, open_log

NOW = 1_700_000_000_000
SETTINGS: dict[str, Any] = {
    "cleanup_policy": COMPACT,
    "segment_bytes": 700,
    "delete_retention_ms": 1,
}
PRODUCERS = 3
AT_THE_TURN = -1
NO_CHECKPOINTS: dict[str, dict[Any, Any]] = {
    name: {} for name in (LOG_START_OFFSETS_FILE, HIGH_WATERMARKS_FILE, RECOVERY_POINTS_FILE)
}


def opened(fs: SimFileSystem, known: LoadHints = UNCLEAN) -> Log:
    """The log of that disk."""
    return open_log(Env(SimClock(NOW), fs, SeededRng(1)), known, **SETTINGS)


class Author:
    """Three producers with transactions, one without."""

    def __init__(self, log: Log, dice: random.Random) -> None:
        self._log, self._dice = log, dice
        self._sequences = [0] * PRODUCERS
        self._is_open = [False] * PRODUCERS
        self._steps = 0

    def write(self, steps: int) -> None:
        """So many records and markers, the ends of all transactions; all closed and durable."""
        for _ in range(steps):
            self._step()
        for producer in range(PRODUCERS):
            if self._is_open[producer]:
                self._end(producer, ABORT)
        self._log.roll()
        make_durable(self._log)

    def _step(self) -> None:
        dice, log = self._dice, self._log
        self._steps += 1
        producer, key = dice.randrange(PRODUCERS + 1), b"%d" % dice.randrange(4)
        if producer == PRODUCERS:
            append(log, NOW, key=key, value=b"plain %d" % self._steps)
        elif self._is_open[producer] and dice.random() < 0.5:
            self._end(producer, dice.choice((ABORT, ABORT, COMMIT)))
        else:
            append(
                log, NOW, key=key, value=b"%d of %d" % (self._steps, producer),
                producer_id=producer, producer_epoch=0, base_sequence=self._sequences[producer],
                transactional=True,
            )  # fmt: skip
            self._sequences[producer] += 1
            self._is_open[producer] = True

    def _end(self, producer: int, kind: int) -> None:
        marker = own_batch(build_marker(Marker(kind, 0), producer, 0, NOW), NOW)
        self._log.append_own(marker, acks_all=False, leader_epoch=0)
        self._is_open[producer] = False


def filled(fs: SimFileSystem, seed: int) -> Log:
    """A log with 60 steps of them."""
    log = opened(fs)
    Author(log, random.Random(seed)).write(60)
    return log


def committed(log: Log) -> dict[bytes | None, bytes | None]:
    """The last value of each key as a reader of committed data gets it."""
    found: dict[bytes | None, bytes | None] = {}
    at, end = log.snapshot.log_start_offset, log.snapshot.high_watermark
    aborted = log.search.aborted(at, end)
    while at < end:
        data = log.read(at, 1 << 20, up_to=end, min_one_batch=True).read()
        for begin, header in iter_headers(memoryview(data)):
            batch = memoryview(data)[begin : begin + header.size_bytes]
            last = header.base_offset + header.last_offset_delta
            is_out = header.is_control or any(
                header.is_transactional
                and each.producer_id == header.producer_id
                and each.first_offset <= header.base_offset <= each.last_offset
                for each in aborted
            )
            if not is_out:
                found.update({each.key: each.value for each in read_records(batch)})
            at = last + 1
    return found


class AbortingLife:
    """A life of such a log, by seed."""

    def __init__(self, seed: int, survivals: int) -> None:
        self.points = 0
        self._dice = random.Random(f"aborting {seed}")
        self._survivals = survivals
        self._clock = SimClock(NOW)
        self._fs = SimFileSystem(clock=self._clock)
        self._log = opened(self._fs)
        self._author = Author(self._log, self._dice)

    def live(self, runs: int = 3) -> None:
        """Records, runs of the cleaner, each to its end or given up."""
        for _ in range(runs):
            self._author.write(self._dice.choice((10, 30, 60)))
            expected = committed(self._log)
            self._fs.on_call = lambda call, expected=expected: self._look(call, expected)
            self._run(
                self._dice.choice((AT_THE_TURN, AT_THE_TURN, AT_THE_TURN, 1, 2, 4, 1000, 1000))
            )
            self._fs.on_call = None
            self._look(0, expected)
            assert committed(self._log) == expected, "a run changes what readers get"

    def _run(self, patience: int) -> None:
        """A run that is given up after so many slices, or right when a segment was to count."""
        self._clock.advance(self._dice.choice((0, 5)))
        env = Env(self._clock, self._fs, SeededRng(2))
        found = verdict(self._log, env, CleanerOffsets(self._fs, "/data"))
        slices = Cleaning(self._log, found, MEMORY, env).slices()
        turns = self._dice.choice((0, 0, 1, 2))
        for part in slices:
            if part.in_turn is not None:
                if patience == AT_THE_TURN and not turns:
                    break
                turns -= 1
            if not patience:
                break
            patience -= patience > 0
            if part.in_turn is not None:
                part.in_turn()
        slices.close()

    def _look(self, call: int, expected: object) -> None:
        known = LoadHints(is_clean=False, recovery_point=self._log.durability.recovery_point)
        for cut in range(self._survivals):
            self.points += 1
            disk = self._fs.after_crash(call * 31 + cut)
            log = opened(disk, known)
            assert committed(log) == expected, "readers of committed data get something else"
            again = committed(opened(disk.after_kill(), known))
            assert again == expected, "a second start differs"
            log.close()
            assert_proved(disk)
            left = [entry.name for entry in disk.list_dir("/data/t-0")]
            assert not [name for name in left if name.endswith((".swap", ".cleaned"))]


def assert_proved(disk: SimFileSystem) -> None:
    """Verifies the partition after a clean stop, as `horolog verify`: each file fits the others."""
    path = "/data/t-0"
    whole = DirectorySurvey((path,), 0, is_clean=True, checkpoints=NO_CHECKPOINTS, damage=())
    report = verify_partition(disk, path, whole, lambda size: None)
    wrong = [each for each in report.findings if each.severity == "wrong"]
    assert not wrong, f"a mixture: {wrong}"
