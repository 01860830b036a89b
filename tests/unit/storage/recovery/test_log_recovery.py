"""What a log is after a crash: tails go, damage stays, indexes are made anew (operations B3.4)."""

from itertools import product

import pytest

from protocol.records.old_formats.legacy_builder import build_set
from storage.env import Env
from storage.errors import LogOffline
from storage.log.log import Log
from storage.recovery.loading import LoadHints
from storage.zones.zone_map import ARRIVAL_ESTIMATED
from tests.support.disk.simenv import sim_env
from tests.support.records.logs import (
    CLEAN,
    LOG_PATH,
    append,
    append_bytes,
    make_durable,
    offsets_of,
    open_log,
    records_of,
)
from tests.support.records.logs import build_batch as batch_of

BATCH_BYTES = 72
FIRST_LOG = f"{LOG_PATH}/{0:020d}.log"


def written(env: Env, count: int = 10, **settings: object) -> Log:
    log = unsynced(env, count, **settings)
    make_durable(log)
    return log


def unsynced(env: Env, count: int = 10, **settings: object) -> Log:
    log = open_log(env, **settings)
    for offset in range(count):
        append(log, 1000 + offset)
    return log


def rewrite(env: Env, position: int, data: bytes, path: str = FIRST_LOG) -> None:
    env.fs.open(path).write_at(position, data)


def size_of(env: Env, path: str = FIRST_LOG) -> int:
    return env.fs.open(path).size()


@pytest.mark.parametrize("kept", [1, 11, 30, 61, 71])
def test_a_torn_tail_is_cut(kept: int) -> None:
    env = sim_env()
    unsynced(env)
    env.fs.open(FIRST_LOG).truncate(9 * BATCH_BYTES + kept)
    log = open_log(env)
    assert offsets_of(records_of(log)) == list(range(9))
    assert size_of(env) == 9 * BATCH_BYTES
    assert log.corruption is None
    assert append(log, 5).base_offset == 9


def test_garbage_behind_the_last_batch_is_cut() -> None:
    env = sim_env()
    written(env)
    rewrite(env, 10 * BATCH_BYTES, b"\x05" * 1000)
    log = open_log(env)
    assert log.snapshot.log_end_offset == 10
    assert size_of(env) == 10 * BATCH_BYTES


def test_bytes_that_never_reached_the_disk_are_a_torn_tail() -> None:
    """A power cut may keep later sectors and lose earlier ones: those read as zeros."""
    env = sim_env()
    log = open_log(env)
    for at in range(3):
        append(log, at, value=bytes([7]) * 3000)
    rewrite(env, 3584, bytes(512))
    log = open_log(env)
    assert (log.snapshot.log_end_offset, log.corruption) == (1, None)
    assert append(log, 5).base_offset == 1


SOUND_IN_A_VALUE = [
    build_set([(5000, 5, None, b"a message of format 1")], 1),
    bytes(batch_of([(5, None, b"a batch")], base_offset=5000)),
]


@pytest.mark.parametrize("inner", SOUND_IN_A_VALUE, ids=["message", "batch"])
@pytest.mark.parametrize("is_short", [True, False])
def test_what_a_client_has_put_into_a_torn_batch_is_no_log(inner: bytes, is_short: bool) -> None:
    """A topic of captured traffic has such values; whoever may write can have them, too."""
    env = sim_env()
    log = open_log(env)
    append(log, 1)
    append(log, 2, value=b"v" * 1500 + inner + b"v" * 1500)
    if is_short:
        env.fs.open(FIRST_LOG).truncate(size_of(env) - 100)
    else:
        rewrite(env, 512, bytes(512))
    log = open_log(env)
    assert (log.corruption, log.snapshot.log_end_offset) == (None, 1)
    assert append(log, 5).base_offset == 1


def test_a_flipped_bit_before_sound_batches_is_damage_and_is_kept() -> None:
    env = sim_env()
    written(env)
    before = env.fs.read_bytes(FIRST_LOG)
    rewrite(env, 4 * BATCH_BYTES + 66, b"\xff")
    damaged = env.fs.read_bytes(FIRST_LOG)
    log = open_log(env)
    assert log.corruption is not None
    assert offsets_of(records_of(log)) == [0, 1, 2, 3]
    with pytest.raises(LogOffline):
        append(log, 1)
    assert env.fs.read_bytes(FIRST_LOG) == damaged != before


def test_damage_is_not_forgotten_by_a_clean_stop() -> None:
    env = sim_env()
    written(env)
    rewrite(env, 4 * BATCH_BYTES + 66, b"\xff")
    open_log(env).close()
    again = open_log(env, CLEAN)
    assert again.corruption is not None
    assert again.snapshot.log_end_offset == 4
    rewrite(env, 4 * BATCH_BYTES + 66, b"e")
    rewrite(env, 4 * BATCH_BYTES, batch_of([(1004, None, b"test")], base_offset=4, leader_epoch=0))
    mended = open_log(env, CLEAN)
    assert (mended.corruption, mended.snapshot.log_end_offset) == (None, 10)


def test_damage_below_the_recovery_point_is_no_torn_tail() -> None:
    env = sim_env()
    written(env)
    rewrite(env, 9 * BATCH_BYTES + 66, b"\xff")
    known = LoadHints(is_clean=False, recovery_point=10)
    for _ in range(2):
        log = open_log(env, known)
        assert log.corruption is not None
        assert size_of(env) == 10 * BATCH_BYTES
        known = LoadHints(is_clean=False, recovery_point=log.durability.recovery_point)


@pytest.mark.parametrize(
    "rest",
    [
        batch_of([(9, None, b"the next one")], base_offset=6, leader_epoch=0),
        b"the rest of a batch that was refused",
    ],
    ids=["whole", "a part"],
)
def test_what_a_refused_write_left_behind_a_whole_segment_is_cut(rest: bytes) -> None:
    """The write failed half-way, the segment was closed, and its new length never got durable."""
    env = sim_env()
    unsynced(env, 20, segment_bytes=500)
    size = size_of(env)
    rewrite(env, size, bytes(rest))
    log = open_log(env, segment_bytes=500)
    assert (log.corruption, size_of(env)) == (None, size)
    assert offsets_of(records_of(log)) == list(range(20))


@pytest.mark.parametrize("known", [LoadHints(False, recovery_point=5), LoadHints(False)])
def test_a_damaged_offset_before_the_next_segment_cuts_nothing(known: LoadHints) -> None:
    """No checksum covers it: the batch looks like one of a segment far behind."""
    env = sim_env()
    written(env, 20, segment_bytes=500)
    size = size_of(env)
    rewrite(env, 2 * BATCH_BYTES + 3, b"\x01")
    log = open_log(env, known, segment_bytes=500)
    assert log.corruption is not None
    assert offsets_of(records_of(log)) == [0, 1]
    assert size_of(env) == size


@pytest.mark.parametrize("known", [CLEAN, LoadHints(False, recovery_point=20)])
@pytest.mark.parametrize("number", [2, 9])
def test_an_offset_that_the_segment_cannot_have_is_damage(number: int, known: LoadHints) -> None:
    """Indexes have no number for it: the whole directory was refused."""
    env = sim_env()
    written(env).close()
    rewrite(env, number * BATCH_BYTES, b"\x01")
    for suffix in (".index", ".timeindex"):
        env.fs.remove(FIRST_LOG.replace(".log", suffix))
    log = open_log(env, known)
    assert log.corruption is not None
    assert offsets_of(records_of(log)) == list(range(number))
    assert size_of(env) == 10 * BATCH_BYTES


@pytest.mark.parametrize("known", [CLEAN, LoadHints(False, recovery_point=7), LoadHints(False)])
def test_no_flipped_bit_of_a_header_cuts_what_was_synced(known: LoadHints) -> None:
    """Offset, length, epoch and format have no checksum."""
    env = sim_env()
    written(env, 7, segment_bytes=250).close()
    disk = env.fs.after_kill()  # type: ignore[attr-defined]
    bases, cut, believed = (0, 3, 6), [], []
    for offset, at, bit in product(range(7), range(21), range(8)):
        fs = disk.after_kill()
        base = max(each for each in bases if each <= offset)
        position = (offset - base) * BATCH_BYTES + at
        file = fs.open(f"{LOG_PATH}/{base:020d}.log")
        file.write_at(position, bytes([file.read_at(position, 1)[0] ^ 1 << bit]))
        log = open_log(sim_env(fs=fs), known, segment_bytes=250)
        sizes = [fs.open(f"{LOG_PATH}/{each:020d}.log").size() for each in bases]
        if sizes != [3 * BATCH_BYTES, 3 * BATCH_BYTES, BATCH_BYTES]:
            cut.append((offset, at, bit))
        elif log.corruption is not None and log.snapshot.log_end_offset > offset:
            believed.append((offset, at, bit))
    assert not cut
    assert not believed


def test_the_end_of_a_log_is_none_that_its_last_segment_cannot_have() -> None:
    """After a clean stop the last batch alone is looked at."""
    env = sim_env()
    written(env).close()
    rewrite(env, 9 * BATCH_BYTES, b"\x01")
    log = open_log(env, CLEAN)
    assert log.corruption is not None
    assert log.snapshot.log_end_offset == 9


def test_segments_behind_a_torn_one_go() -> None:
    env = sim_env()
    unsynced(env, 20, segment_bytes=500)
    env.fs.open(FIRST_LOG).truncate(400)
    log = open_log(env, segment_bytes=500)
    assert log.snapshot.log_end_offset == 5
    names = [entry.name for entry in env.fs.list_dir(LOG_PATH) if entry.name.endswith(".log")]
    assert names == [f"{0:020d}.log"]


def test_a_missing_segment_that_was_never_synced_ends_the_log() -> None:
    env = sim_env()
    log = unsynced(env, 20, segment_bytes=500)
    second = log.snapshot.segments[1].base_offset
    env.fs.remove(f"{LOG_PATH}/{second:020d}.log")
    assert open_log(env, segment_bytes=500).snapshot.log_end_offset == second


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".zones"])
@pytest.mark.parametrize("known", [CLEAN, LoadHints(is_clean=False)])
@pytest.mark.parametrize("content", [None, b"", b"\0" * 1040, b"\xff" * 52, b"abc"])
def test_an_index_file_that_is_missing_or_nonsense_changes_no_answer(
    suffix: str, known: LoadHints, content: bytes | None
) -> None:
    env = sim_env()
    log = written(env, 60, segment_bytes=2000, index_interval_bytes=200)
    log.close()
    for segment in log.snapshot.segments:
        path = segment.path_of(suffix)
        env.fs.remove(path)
        if content is not None:
            rewrite_new(env, path, content)
    log = open_log(env, known, segment_bytes=2000, index_interval_bytes=200)
    assert offsets_of(records_of(log)) == list(range(60))
    for at in (0, 1000, 1017, 1059):
        found = log.search.first_at_or_after(at, below=60)
        assert found == (max(at, 1000), max(at - 1000, 0), 0)
    assert log.search.first_at_or_after(1060, below=60) is None
    assert log.search.first_with_largest() == (1059, 59, 0)
    assert append(log, 1).base_offset == 60


def rewrite_new(env: Env, path: str, content: bytes) -> None:
    file = env.fs.open(path, create=True)
    if content:
        file.write_at(0, content)


def test_producers_are_known_again() -> None:
    env = sim_env()
    log = open_log(env, segment_bytes=300)
    for sequence in range(6):
        append_bytes(log, sequenced(sequence))
    for known in (LoadHints(is_clean=False), CLEAN):
        log = open_log(env, known, segment_bytes=300)
        assert append_bytes(log, sequenced(5)).duplicate
        log.close()
    for entry in env.fs.list_dir(LOG_PATH):
        if entry.name.endswith(".snapshot"):
            env.fs.remove(f"{LOG_PATH}/{entry.name}")
    assert append_bytes(open_log(env, CLEAN, segment_bytes=300), sequenced(5)).duplicate


def sequenced(sequence: int) -> bytearray:
    now = 1_700_000_000_000
    return batch_of([(now, None, b"v")], producer_id=3, producer_epoch=0, base_sequence=sequence)


def test_a_cut_begins_a_new_leader_epoch() -> None:
    """So that readers notice that the log was shorter than they thought (KIP-320)."""
    env = sim_env()
    unsynced(env)
    env.fs.open(FIRST_LOG).truncate(9 * BATCH_BYTES + 5)
    log = open_log(env)
    assert log.leader_epoch == 1
    assert log.epochs.end_offset_of(0, log.snapshot.log_end_offset) == (0, 9)
    assert open_log(env).leader_epoch == 1


def test_arrival_of_zones_that_were_written_is_kept_and_of_lost_ones_estimated() -> None:
    env = sim_env()
    log = open_log(env, horolog_zone_bytes=4096)
    for at in range(4):
        append(log, at, value=bytes(3000))
    make_durable(log)
    append(log, 9, value=bytes(3000))
    log = open_log(env, horolog_zone_bytes=4096)
    segment = log.snapshot.segments[0]
    indexes = log.search.lookup[0].of(segment, segment.size_bytes, log.search.lookup[1])
    flags = [zone.flags & ARRIVAL_ESTIMATED for zone in indexes.zones.zones()]
    assert flags == [0, 0, ARRIVAL_ESTIMATED]


def test_a_start_offset_above_the_end_begins_an_empty_log_there() -> None:
    env = sim_env()
    written(env)
    log = open_log(env, LoadHints(is_clean=False, start_offset=50))
    assert (log.snapshot.log_start_offset, log.snapshot.log_end_offset) == (50, 50)
    assert append(log, 1).base_offset == 50


def test_left_overs_of_a_cleaner_are_settled() -> None:
    env = sim_env()
    log = written(env, 20, segment_bytes=500)
    log.close()
    second = log.snapshot.segments[1].base_offset
    content = env.fs.read_bytes(f"{LOG_PATH}/{second:020d}.log")
    rewrite_new(env, f"{LOG_PATH}/{second:020d}.log.swap", content)
    for name in ("00000000000000000003.log.deleted", f"{19:020d}.log.cleaned", f"{77:020d}.index"):
        rewrite_new(env, f"{LOG_PATH}/{name}", b"x")
    log = open_log(env, CLEAN, segment_bytes=500)
    assert offsets_of(records_of(log)) == list(range(20))
    left = {entry.name for entry in env.fs.list_dir(LOG_PATH)}
    assert not [name for name in left if name.endswith((".swap", ".deleted", ".cleaned"))]
    assert f"{77:020d}.index" not in left


def test_a_directory_without_segments_is_an_empty_log() -> None:
    env = sim_env()
    log = open_log(env, LoadHints(is_clean=True, start_offset=7))
    assert (log.snapshot.log_start_offset, log.snapshot.log_end_offset) == (7, 7)
    assert log.search.first_at_or_after(0, below=7) is None
    assert log.search.first_with_largest() is None
