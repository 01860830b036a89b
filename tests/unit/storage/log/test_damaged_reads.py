"""Bytes that a stop left are checked once before they are served, and damage never is served."""

import random

import pytest

from broker.runtime.wire_error import wire_error
from protocol.errors import ErrorCode
from protocol.records.record import read_records
from protocol.records.scan import scan_batches
from storage.errors import CorruptLog, StorageError
from storage.files.file_slice import FetchData
from storage.log import unverified_range
from storage.log.log import Log
from storage.segment.verified_ranges import EVER, MAX_RANGES, SOUND, UNKNOWN, VerifiedRanges
from storage.verify.scrub import SegmentScrub, scrubbable
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import sim_env
from tests.support.records.logs import UNCLEAN, append, make_durable, open_log, records_of, reopened

BATCHES = 40
BATCH_BYTES = 80
ALL = 1 << 20
FLIPS = 400


@pytest.fixture
def fs() -> SimFileSystem:
    return SimFileSystem()


@pytest.fixture
def log(fs: SimFileSystem) -> Log:
    return stopped_and_started(fs)


def stopped_and_started(fs: SimFileSystem, **settings: int) -> Log:
    """A log of batches of one record each, opened again after a clean stop."""
    env = sim_env(fs=fs)
    log = open_log(env, **{"index_interval_bytes": 500, **settings})
    for offset in range(BATCHES):
        append(log, 1000 + offset, value=b"value %06d" % offset)
    make_durable(log)
    assert log.snapshot.end_position % BATCH_BYTES == 0
    return reopened(log, env)


def fetched(log: Log, offset: int, max_bytes: int = ALL) -> FetchData:
    """What a consumer gets, once doubts are settled."""
    for _ in range(3):
        data = log.read(offset, max_bytes, up_to=log.snapshot.high_watermark, min_one_batch=True)
        if data.unverified is None:
            return data
        data.unverified.settle()
    pytest.fail("settling a range leads nowhere")


def values_from(log: Log, offset: int) -> tuple[list[bytes | None], ErrorCode | None]:
    """All values that a consumer reads from there, and the error that ends it, if one does."""
    found: list[bytes | None] = []
    while offset < log.snapshot.high_watermark:
        try:
            data = fetched(log, offset).read()
        except StorageError as error:
            return found, wire_error(error).code
        for row in scan_batches(data).batches:
            for record in read_records(memoryview(data)[row[0] : row[0] + row[5]]):
                assert record.offset == offset, "a consumer would skip a record"
                found.append(record.value)
                offset += 1
    return found, None


def flip(log: Log, at: int, bit: int = 2, segment: int = -1) -> None:
    file = log.snapshot.segments[segment].file()
    file.write_at(at, bytes([file.read_at(at, 1)[0] ^ 1 << bit]))


def test_what_a_stop_left_is_checked_once(log: Log) -> None:
    assert log.read(0, ALL, up_to=BATCHES, min_one_batch=True).unverified is not None
    assert fetched(log, 0).size_bytes == BATCHES * BATCH_BYTES
    for offset in (0, 7, BATCHES - 1):
        assert log.read(offset, ALL, up_to=BATCHES, min_one_batch=True).unverified is None


def test_only_what_is_wanted_is_checked(log: Log) -> None:
    fetched(log, 10, 3 * BATCH_BYTES + 5)
    assert log.snapshot.active.sound.ranges == ((10 * BATCH_BYTES, 14 * BATCH_BYTES),)
    assert log.read(9, 10, up_to=BATCHES, min_one_batch=True).unverified is not None
    assert log.read(13, 10, up_to=BATCHES, min_one_batch=True).unverified is None
    assert log.read(14, 10, up_to=BATCHES, min_one_batch=True).unverified is not None


def test_who_reads_on_has_more_checked_at_once(log: Log) -> None:
    fetched(log, 0, BATCH_BYTES)
    fetched(log, 1, BATCH_BYTES)
    assert log.snapshot.active.sound == SOUND


def test_what_recovery_read_is_not_checked_again(fs: SimFileSystem) -> None:
    log = reopened(stopped_and_started(fs), sim_env(fs=fs), UNCLEAN)
    assert log.read(0, ALL, up_to=BATCHES, min_one_batch=True).unverified is None


def test_what_this_process_appends_is_not_checked(log: Log) -> None:
    append(log, 5000)
    assert log.read(BATCHES, ALL, up_to=BATCHES + 1, min_one_batch=True).unverified is None
    assert fetched(log, BATCHES - 1, 2 * BATCH_BYTES).size_bytes > BATCH_BYTES
    assert log.read(BATCHES - 1, ALL, up_to=BATCHES + 1, min_one_batch=True).unverified is None


def test_a_fetch_may_end_within_a_batch(log: Log) -> None:
    assert fetched(log, 0, BATCH_BYTES + 30).size_bytes == BATCH_BYTES + 30


def test_what_lies_before_the_damage_is_served(log: Log) -> None:
    flip(log, 20 * BATCH_BYTES + 70)
    values, error = values_from(log, 0)
    assert values == [b"value %06d" % offset for offset in range(20)]
    assert error == ErrorCode.CORRUPT_MESSAGE
    assert values_from(log, 21) == ([b"value %06d" % offset for offset in range(21, 40)], None)


def test_the_first_batch_may_be_the_damaged_one_whatever_the_limit(log: Log) -> None:
    flip(log, 3 * BATCH_BYTES + 70)
    with pytest.raises(CorruptLog, match="is damaged: it is not served"):
        fetched(log, 3, 1)


def test_known_damage_is_not_read_again(log: Log) -> None:
    flip(log, 70)
    with pytest.raises(CorruptLog):
        fetched(log, 0)
    with pytest.raises(CorruptLog):
        log.read(0, ALL, up_to=BATCHES, min_one_batch=True)


@pytest.mark.parametrize("chunk_bytes", [unverified_range.CHUNK_BYTES, 100])
def test_no_flipped_bit_reaches_a_consumer(
    fs: SimFileSystem, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    """Whatever bit of the log it is: all records before it come, none that is not as written."""
    monkeypatch.setattr(unverified_range, "CHUNK_BYTES", chunk_bytes)
    expected = [b"value %06d" % offset for offset in range(BATCHES)]
    dice = random.Random(11)
    log = stopped_and_started(fs)
    for _ in range(FLIPS):
        at, bit = dice.randrange(log.snapshot.end_position), dice.randrange(8)
        in_batch = at % BATCH_BYTES
        flip(log, at, bit)
        values, error = values_from(log, 0)
        where = f"byte {in_batch} of batch {at // BATCH_BYTES}, bit {bit}"
        if 12 <= in_batch < 16:  # the leader's epoch: no part of the record
            assert (values, error) == (expected, None), where
        else:
            assert error is not None, where
            assert values == expected[: len(values)], where
            assert len(values) in {at // BATCH_BYTES, at // BATCH_BYTES - 1}, where
        flip(log, at, bit)
        log.snapshot.active.sound = UNKNOWN
    assert values_from(log, 0) == (expected, None)


def test_bad_memory_is_told_from_a_bad_disk(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page cache had it wrong; what lies on the disk is as it was written."""
    flip(log, 70)
    file = log.snapshot.active.file()
    monkeypatch.setattr(
        type(file), "let_go", lambda self, position, size: flip(log, 70), raising=False
    )
    assert values_from(log, 0) == ([b"value %06d" % offset for offset in range(BATCHES)], None)


def test_a_file_that_was_cut_short_ends_there(log: Log) -> None:
    fetched(log, 0, 1)
    log.snapshot.active.file().truncate(5 * BATCH_BYTES + 10)
    values, error = values_from(log, 0)
    assert (len(values), error) == (5, ErrorCode.CORRUPT_MESSAGE)


def test_closed_segments_are_checked_too(fs: SimFileSystem) -> None:
    log = stopped_and_started(fs, segment_bytes=10 * BATCH_BYTES)
    assert len(log.snapshot.segments) == 4
    assert values_from(log, 0) == ([b"value %06d" % offset for offset in range(BATCHES)], None)
    assert [each.sound for each in log.snapshot.segments] == [SOUND] * 4


def test_a_look_for_rot_spares_the_check_or_asks_for_it_again(fs: SimFileSystem) -> None:
    log = stopped_and_started(fs, segment_bytes=10 * BATCH_BYTES)
    make_durable(log)
    for rotten in (False, True):
        if rotten:
            flip(log, 70, segment=0)
        segment, following = scrubbable(log)[0]
        for _ in SegmentScrub(log, segment, following).steps():
            continue
        assert (values_from(log, 0)[1] is not None) == rotten


def test_all_records_are_there_after_a_restart(log: Log) -> None:
    assert len(records_of(log)) == BATCHES


# --- what is known ---


def test_parts_that_touch_become_one() -> None:
    known = VerifiedRanges(100).with_sound(10, 20).with_sound(30, 40).with_sound(20, 30)
    assert known.ranges == ((10, 40),)
    assert [known.end_from(at) for at in (9, 10, 39, 40, 100)] == [9, 40, 40, 40, EVER]
    assert known.with_sound(40, 100) == VerifiedRanges(10)
    assert known.with_sound(0, 5).with_sound(5, 120) == SOUND


def test_what_is_found_sound_is_no_damage_any_more() -> None:
    known = VerifiedRanges(100).with_damage(20).with_damage(5)
    assert known.damaged == (5, 20)
    assert known.with_sound(10, 30).damaged == (5,)


def test_what_is_known_stays_small() -> None:
    known = VerifiedRanges(EVER)
    for step in range(3 * MAX_RANGES):
        known = known.with_sound(100 * step, 100 * step + 10 + step)
    assert len(known.ranges) == MAX_RANGES
    assert known.end_from(100 * 3 * MAX_RANGES - 100) > 100 * 3 * MAX_RANGES - 100


def test_against_a_set_of_bytes() -> None:
    dice = random.Random(3)
    for _ in range(200):
        known, model = VerifiedRanges(200), set(range(200, 300))
        for _ in range(12):
            begin = dice.randrange(200)
            end = begin + dice.randrange(1, 40)
            known = known.with_sound(begin, end)
            model |= set(range(begin, end))
        for at in range(200):
            end = at
            while end in model and end < 299:
                end += 1
            assert min(known.end_from(at), 299) == end, (known, at)
