"""Directories that an old Kafka left: segments of formats 0 and 1, alone and beside format 2.

`tests/golden/kafka_2_8_segments.txt` holds `.log` files of Kafka 2.8.2 whose topics went through
all formats, codecs and both timestamp types, in one segment (`single`) and in five (`rolled`).
"""

from pathlib import Path

import pytest

from protocol.records.batch import iter_headers
from protocol.records.compression import Codec
from protocol.records.old_formats.legacy_builder import Row, build_set
from protocol.records.record import Record
from storage.env import Env
from storage.errors import DiskError
from storage.log.log import Log
from storage.recovery.loading import LoadHints
from tests.support.disk.simdisk import SimFileSystem, SimulatedCrash
from tests.support.disk.simenv import SeededRng, SimClock, sim_env
from tests.support.records.logs import (
    CLEAN,
    LOG_PATH,
    UNCLEAN,
    append,
    open_log,
    records_of,
    reopened,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "kafka_2_8_segments.txt"
KINDS = ["rolled", "single"]
SET = [(1000, b"k", b"first"), (999, None, b"second"), (1001, b"z", None)]
UNTIMED = [(-1, key, value) for _, key, value in SET]
TIMED_FROM, STAMPED_FROM, STAMPED_UP_TO, COUNT = 12, 24, 36, 42
OLD_ROWS: list[Row] = [(n, 1000 + n, b"k", b"value %d" % n) for n in range(40)]
FIRST_LOG = f"{LOG_PATH}/{0:020d}.log"


def put(env: Env, name: str, data: bytes) -> None:
    """A file as somebody left it, durable."""
    env.fs.make_dir(LOG_PATH)
    path = f"{LOG_PATH}/{name}"
    file = env.fs.open(path, create=True)
    file.write_at(0, data)
    file.sync()
    for above in ("/", "/data", LOG_PATH):
        env.fs.sync_dir(above)


def left_by_kafka(env: Env, kind: str) -> None:
    for line in GOLDEN.read_text().splitlines():
        topic, base, data = line.split()
        if topic == kind:
            put(env, f"{int(base):020d}.log", bytes.fromhex(data))
            for suffix in (".index", ".timeindex"):
                put(env, f"{int(base):020d}{suffix}", b"")
    put(env, "leader-epoch-checkpoint", b"0\n1\n0 30\n")


def what_kafka_had(records: list[Record]) -> None:
    """The same set 14 times: without time, with its own times, stamped, with its own times."""
    assert [record.offset for record in records] == list(range(COUNT))
    for record in records:
        time, key, value = (UNTIMED if record.offset < TIMED_FROM else SET)[record.offset % 3]
        assert (record.key, record.value) == (key, value)
        if not STAMPED_FROM <= record.offset < STAMPED_UP_TO:
            assert record.timestamp == time
        else:
            assert record.timestamp > 1_700_000_000_000


@pytest.mark.parametrize("known", [CLEAN, UNCLEAN, LoadHints(False, recovery_point=33)])
@pytest.mark.parametrize("kind", KINDS)
def test_what_an_old_kafka_left_is_served(kind: str, known: LoadHints) -> None:
    env = sim_env()
    left_by_kafka(env, kind)

    log = open_log(env, known)

    what_kafka_had(records_of(log))
    assert log.corruption is None
    assert append(log, 5).base_offset == COUNT
    log = reopened(log, env)
    what_kafka_had(records_of(log)[:COUNT])


@pytest.mark.parametrize("kind", KINDS)
def test_codecs_kinds_of_time_and_epochs_stay(kind: str) -> None:
    env = sim_env()
    left_by_kafka(env, kind)
    log = open_log(env, CLEAN)

    headers = []
    for segment in log.snapshot.segments:
        data = segment.file().read_at(0, 1 << 20)
        headers += [header for _, header in iter_headers(data)]

    by_set = {header.base_offset // 3: header for header in headers}
    names = ["NONE", "GZIP", "SNAPPY", "LZ4"] * 2 + ["NONE", "GZIP", "NONE", "ZSTD", "NONE", "GZIP"]
    assert [by_set[n].codec for n in range(14)] == [Codec[name] for name in names]
    stamped = [n for n, header in sorted(by_set.items()) if header.is_log_append_time]
    assert stamped == [8, 9, 10, 11]
    assert {header.leader_epoch for header in headers if header.base_offset < 30} == {-1}
    assert log.epochs.entries == ((0, 30),)


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_searched_by_time(kind: str) -> None:
    env = sim_env()
    left_by_kafka(env, kind)
    log = open_log(env, CLEAN)

    for timestamp in (0, 999, 1000, 1001):
        found = log.search.first_at_or_after(timestamp, below=COUNT)
        expected = next(r for r in records_of(log) if r.timestamp >= timestamp)
        assert found is not None
        assert (found.timestamp, found.offset) == (expected.timestamp, expected.offset)


@pytest.mark.parametrize("magic", [0, 1])
def test_single_messages_are_gathered_into_batches(magic: int) -> None:
    """As compaction left them, with gaps."""
    env = sim_env()
    rows: list[Row] = [(3 * n, n if magic else -1, None, bytes(20)) for n in range(5000)]
    data = build_set(rows, magic)
    put(env, f"{0:020d}.log", data)

    log = open_log(env, CLEAN, cleanup_policy=frozenset({"compact"}))

    found = records_of(log)
    assert [(r.offset, r.timestamp, r.key, r.value) for r in found] == rows
    assert log.snapshot.size_bytes < len(data)
    assert log.snapshot.log_end_offset == 3 * 4999 + 1


def test_the_age_of_records_without_time_stays() -> None:
    env = sim_env()
    put(env, f"{0:020d}.log", build_set(OLD_ROWS, 0))
    env.fs.set_mtime(FIRST_LOG, 1_234_567_000)

    log = open_log(env, CLEAN)

    assert log.snapshot.segments[0].mtime_ms == 1_234_567_000
    (entry,) = (e for e in env.fs.list_dir(LOG_PATH) if e.name == f"{0:020d}.log")
    assert entry.mtime_ms == 1_234_567_000


@pytest.mark.parametrize("cut", [1, 20, 45])
def test_a_torn_tail_is_cut(cut: int) -> None:
    env = sim_env()
    data = build_set(OLD_ROWS, 1)
    put(env, f"{0:020d}.log", data[:-cut])

    log = open_log(env, UNCLEAN)

    assert log.corruption is None
    assert len(records_of(log)) == 40 - (1 if cut < 45 else 2)
    assert append(log, 5).base_offset == log.snapshot.log_end_offset - 1


def test_zeros_behind_the_last_message_are_cut() -> None:
    env = sim_env()
    put(env, f"{0:020d}.log", build_set(OLD_ROWS, 1) + bytes(5000))

    log = open_log(env, UNCLEAN)

    assert (log.corruption, len(records_of(log))) == (None, 40)
    assert append(log, 5).base_offset == 40


@pytest.mark.parametrize("size", [26, 100, 5000])
def test_a_file_of_zeros_is_not_taken_for_an_old_one(size: int) -> None:
    env = sim_env()
    put(env, f"{0:020d}.log", bytes(size))

    log = open_log(env, UNCLEAN)

    assert (log.corruption, log.snapshot.log_end_offset) == (None, 0)


@pytest.mark.parametrize("known", [CLEAN, UNCLEAN])
@pytest.mark.parametrize("at", [8, 11, 16, 17, 25, 40])
@pytest.mark.parametrize("number", [0, 7])
def test_damage_before_sound_messages_is_kept(number: int, at: int, known: LoadHints) -> None:
    """In its size, format, attributes, time or value; the offset has no checksum."""
    env = sim_env()
    data = bytearray(build_set(OLD_ROWS, 1))
    data[len(build_set(OLD_ROWS[:number], 1)) + at] ^= 0x40
    put(env, f"{0:020d}.log", bytes(data))

    log = open_log(env, known)

    assert log.corruption is not None
    assert [record.offset for record in records_of(log)] == list(range(number))
    assert bytes(data[-400:]) in env.fs.read_bytes(FIRST_LOG)
    again = open_log(env, CLEAN)
    assert again.corruption is not None


@pytest.mark.parametrize("known", [CLEAN, UNCLEAN, LoadHints(False, recovery_point=33)])
def test_damage_in_the_middle_ends_the_log_and_keeps_what_follows(known: LoadHints) -> None:
    env = sim_env()
    left_by_kafka(env, "rolled")
    path = f"{LOG_PATH}/{9:020d}.log"
    size = env.fs.open(path).size()
    env.fs.open(path).write_at(size - 1, b"?")
    before = {entry.name for entry in env.fs.list_dir(LOG_PATH) if entry.name.endswith(".log")}

    for _ in range(2):
        log = open_log(env, known)

        assert log.corruption is not None
        assert [record.offset for record in records_of(log)] == list(range(15))
        kept = {entry.name for entry in env.fs.list_dir(LOG_PATH) if entry.name.endswith(".log")}
        assert kept == before


def test_old_messages_behind_new_batches_are_never_cut() -> None:
    """A topic's format may have been lowered. They are not served, and stay."""
    env = sim_env()
    log = open_log(env)
    append(log, 1000)
    log.close()
    old = build_set([(1, 5, None, b"old")], 1)
    size = env.fs.open(FIRST_LOG).size()
    env.fs.open(FIRST_LOG).write_at(size, old)

    log = open_log(env, UNCLEAN)

    assert log.corruption is not None
    assert env.fs.read_bytes(FIRST_LOG).endswith(old)


@pytest.mark.parametrize("operation", ["create", "write", "sync", "rename", "sync directory"])
def test_a_failing_call_leaves_the_old_segments(operation: str) -> None:
    fs = SimFileSystem()
    env = Env(SimClock(), fs, SeededRng())
    left_by_kafka(env, "rolled")
    fs.inject(operation, path=LOG_PATH, error="enospc")

    with pytest.raises(DiskError):
        open_log(env, CLEAN)

    what_kafka_had(records_of(open_log(env, CLEAN)))


def test_a_power_cut_at_any_call_loses_nothing() -> None:
    left = SimFileSystem()
    left_by_kafka(Env(SimClock(), left, SeededRng()), "rolled")
    calls = _calls_of(left)
    for crash_at in range(1, calls + 1):
        fs = left.after_kill()
        fs.crash_at = fs.calls + crash_at
        with pytest.raises(SimulatedCrash):
            _opened(fs)
        what_kafka_had(records_of(_opened(fs.after_crash(crash_at))))


def _calls_of(left: SimFileSystem) -> int:
    fs = left.after_kill()
    before = fs.calls
    _opened(fs)
    return fs.calls - before


def _opened(fs: SimFileSystem) -> Log:
    return open_log(Env(SimClock(), fs, SeededRng()), CLEAN)
