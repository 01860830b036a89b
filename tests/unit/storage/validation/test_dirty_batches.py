"""What becomes of a batch with times out of bounds, policy by policy, down to the bytes."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import crc_matches, read_header
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.record import Record, read_records
from storage.env import Env
from storage.log.log import AppendResult, InvalidRecordError, Log
from storage.timestamps import Direction, Suspicion, bounds
from storage.validation.checked_batch import MistimedBatch
from storage.validation.dirty_timestamps import FAR_FUTURE_MS, Action, DirtyFinding
from storage.validation.scratch import Scratch
from storage.validation.timestamp_policy import Origin, Rewritten, TooLarge, rewritten
from storage.zones.gaps import GAP_BITS
from storage.zones.zone_map import DIRTY_FUTURE, DIRTY_PAST, UNTIMED
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng, SimClock, sim_env
from tests.support.records.logs import CLEAN, UNCLEAN, append, append_bytes, open_log, records_of

NOW = 1_700_000_000_000
HOUR, DAY = 3_600_000, 86_400_000
BOUNDS = {
    "message_timestamp_before_max_ms": DAY,
    "message_timestamp_after_max_ms": HOUR,
}
ORIGIN = Origin("t", 0, "sensor-7", "10.0.0.9")
CODECS = list(Codec)


def policy_log(policy: str, env: Env | None = None, **changed: object) -> Log:
    return open_log(env or sim_env(), horolog_timestamp_policy=policy, **BOUNDS, **changed)


def rewrite(log: Log, times: list[int], origin: Origin = ORIGIN, **batch: object) -> Rewritten:
    """The batch as the log wants it; not stored yet."""
    with pytest.raises(MistimedBatch) as caught:
        append(log, *times, **batch)
    return rewritten(caught.value, origin, Scratch())


def store(log: Log, made: Rewritten) -> AppendResult:
    return log.append(made.batch, acks_all=False, leader_epoch=0)


def header_of(record: Record, name: str) -> bytes | None:
    return dict(record.headers)[name]


def stored(log: Log) -> memoryview:
    snapshot = log.snapshot
    return memoryview(
        log.read(0, 1 << 20, up_to=snapshot.high_watermark, min_one_batch=True).read()
    )


TIMES = [NOW, NOW * 1000, NOW - 5, NOW // 1000, -1]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("policy", "times"),
    [
        ("clamp", [NOW, NOW + HOUR, NOW - 5, NOW - DAY, -1]),
        ("restamp", [NOW, NOW, NOW - 5, NOW, -1]),
    ],
)
def test_changed_times_keep_what_was_claimed(policy: str, times: list[int], codec: Codec) -> None:
    log = policy_log(policy)
    result = store(log, rewrite(log, TIMES, codec=codec, value=b"v" * 50))
    batch = stored(log)
    header = read_header(batch)
    records = records_of(log)
    assert (result.base_offset, result.last_offset) == (0, 4)
    assert crc_matches(batch, 0, header)
    assert (header.codec, header.record_count, header.last_offset_delta) == (codec, 5, 4)
    assert header.max_timestamp == max(times)
    assert [record.timestamp for record in records] == times
    assert [record.value for record in records] == [b"v" * 50] * 5
    assert header_of(records[1], "horolog.claimed.timestamp") == str(NOW * 1000).encode()
    assert header_of(records[3], "horolog.claimed.timestamp") == str(NOW // 1000).encode()
    assert not any(records[at].headers for at in (0, 2, 4))


def test_accepted_times_are_stored_as_sent_and_told() -> None:
    log = policy_log("accept")
    sent = build_batch([(at, None, b"v") for at in TIMES])
    result = append_bytes(log, sent)
    assert bytes(stored(log)[61:]) == bytes(sent[61:])
    assert result.dirty is not None
    assert result.dirty.findings == (
        DirtyFinding(Direction.PAST, Suspicion.SECONDS, Action.ACCEPTED, 1, 3, 3, NOW // 1000, 3),
        DirtyFinding(
            Direction.FUTURE, Suspicion.MICROSECONDS, Action.ACCEPTED, 1, 1, 1, NOW * 1000, 1
        ),
        DirtyFinding(Direction.NONE, Suspicion.NEGATIVE, Action.STORED, 1, 4, 4, -1, 4),
    )


def test_rejected_ones_are_told_with_the_refusal() -> None:
    log = policy_log("reject")
    with pytest.raises(InvalidRecordError) as caught:
        append(log, *TIMES)
    error = caught.value
    assert [index for index, _ in error.record_errors] == [1, 3]
    assert error.dirty is not None
    assert {finding.action for finding in error.dirty.findings} == {Action.REJECTED}
    assert sum(finding.count for finding in error.dirty.findings) == 2


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_without_its_bad_records_keeps_its_offsets_and_sequences(codec: Codec) -> None:
    log = policy_log("quarantine")
    made = rewrite(
        log, TIMES, codec=codec, producer_id=7, producer_epoch=0, base_sequence=0, value=b"v" * 9
    )
    result = store(log, made)
    header = read_header(stored(log))
    assert (result.base_offset, result.last_offset, result.end_offset) == (0, 4, 5)
    assert (header.record_count, header.last_offset_delta, header.last_sequence) == (3, 4, 4)
    assert [record.offset for record in records_of(log)] == [0, 2, 4]
    again = build_batch([(NOW, None, b"v")], producer_id=7, producer_epoch=0, base_sequence=5)
    assert append_bytes(log, again).base_offset == 5


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_set_aside_says_whence_it_came(codec: Codec) -> None:
    log = policy_log("quarantine")
    append(log, NOW, NOW)
    made = rewrite(log, TIMES, codec=codec, key=b"k", value=b"v" * 50, transactional=True,
                  producer_id=7, producer_epoch=0, base_sequence=0)  # fmt: skip
    assert made.aside is not None
    header = made.aside.header
    assert crc_matches(made.aside.records, 0, header)
    assert (header.producer_id, header.base_sequence, header.is_transactional) == (-1, -1, False)
    assert made.batch.header.is_transactional
    assert header.codec is (codec or Codec.LZ4)
    first, second = read_records(made.aside.records)
    assert (first.offset, first.timestamp, first.key, first.value) == (0, NOW, b"k", b"v" * 50)
    assert dict(first.headers) == {
        "horolog.origin.topic": b"t",
        "horolog.origin.partition": b"0",
        "horolog.arrival.timestamp": str(NOW).encode(),
        "horolog.client.id": b"sensor-7",
        "horolog.client.address": b"10.0.0.9",
        "horolog.reason": b"future: microseconds",
        "horolog.claimed.timestamp": str(NOW * 1000).encode(),
        "horolog.origin.offset": b"3",
    }
    assert header_of(second, "horolog.origin.offset") == b"5"
    assert header_of(second, "horolog.reason") == b"past: seconds"


def test_a_batch_that_loses_all_stays_as_an_empty_one() -> None:
    env = sim_env()
    log = policy_log("quarantine", env)
    append(log, NOW)
    made = rewrite(log, [0, 1, 2], producer_id=7, producer_epoch=3, base_sequence=0,
                  codec=Codec.GZIP)  # fmt: skip
    result = store(log, made)
    append(log, NOW + 1)
    assert (result.base_offset, result.last_offset) == (1, 3)
    assert [record.offset for record in records_of(log)] == [0, 4]
    header = read_header(stored(log), 0 + read_header(stored(log)).size_bytes)
    assert header.size_bytes == 61
    assert (header.codec, header.record_count, header.last_offset_delta) == (Codec.NONE, 0, 2)
    assert (header.max_timestamp, header.last_sequence) == (NOW, 2)
    repeated = build_batch(
        [(at, None, b"test") for at in (0, 1, 2)],
        producer_id=7, producer_epoch=3, base_sequence=0,
    )  # fmt: skip
    assert append_bytes(log, repeated) == result._replace(
        duplicate=True, log_append_time_ms=NOW, end_offset=5, dirty=None
    )


@pytest.mark.parametrize("known", [CLEAN, UNCLEAN])
def test_holes_and_empty_batches_survive_a_restart_and_are_searched(known: object) -> None:
    clock = SimClock(NOW)
    env = Env(clock, SimFileSystem(clock=clock), SeededRng(1))
    log = policy_log("quarantine", env, horolog_zone_bytes=4096, segment_bytes=20_000)
    expected = []
    for round_ in range(400):
        at = clock.now_ms()
        times = [at, 0, at + 1, at * 1000] if round_ % 3 == 0 else [0, 1]
        base = store(log, rewrite(log, times)).base_offset
        if round_ % 3 == 0:
            expected += [(at, base), (at + 1, base + 2)]
        clock.advance(500)
    for log_now in (log, _again(log, env, known)):
        assert [(r.timestamp, r.offset) for r in records_of(log_now)] == expected
        for at, offset in expected[::7]:
            found = log_now.search.first_at_or_after(at, below=10**9)
            assert found is not None
            assert (found.timestamp, found.offset) == (at, offset)


def _again(log: Log, env: Env, known: object) -> Log:
    if known is CLEAN:
        log.close()
    kept = {name: getattr(log.config, name) for name in log.config.__slots__}
    return open_log(env, known, log.files.path, **kept)  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", ["clamp", "restamp", "quarantine"])
def test_a_repeated_batch_is_known_before_anything_is_done_about_its_times(policy: str) -> None:
    log = policy_log(policy)
    how = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    first = store(log, rewrite(log, TIMES, **how))
    again = append(log, *TIMES, **how)
    assert again.duplicate
    assert (again.base_offset, again.last_offset) == (first.base_offset, first.last_offset)
    with pytest.raises(KafkaError) as caught:
        append(log, *TIMES, **{**how, "base_sequence": 9})
    assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_topic_with_a_codec_of_its_own_gets_it_in_the_same_go() -> None:
    log = policy_log("clamp", compression_type="zstd")
    store(log, rewrite(log, TIMES, codec=Codec.GZIP))
    assert read_header(stored(log)).codec is Codec.ZSTD
    assert records_of(log)[1].timestamp == NOW + HOUR


@pytest.mark.parametrize("policy", ["clamp", "restamp"])
@pytest.mark.parametrize("base", [-(2**63), 2**63 - 1])
def test_times_at_the_ends_of_64_bits(policy: str, base: int) -> None:
    log = policy_log(policy)
    near = base + 5 if base < 0 else base - 5
    store(log, rewrite(log, [base, near, base]))
    records = records_of(log)
    assert all(NOW - DAY <= record.timestamp <= NOW + HOUR for record in records)
    assert header_of(records[1], "horolog.claimed.timestamp") == str(near).encode()


BOUND = st.sampled_from([0, 1, HOUR, NOW, NOW + 1, 2**62, 2**63 - 2, 2**63 - 1])


@settings(max_examples=200)
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-2, NOW * 2), min_size=1, max_size=5),
    BOUND, BOUND, st.sampled_from(["clamp", "restamp", "quarantine"]),
)  # fmt: skip
def test_any_times_under_any_bounds(times: list[int], before: int, after: int, policy: str) -> None:
    """What comes out is in bounds or has no time, and what was good is as it was."""
    reach = [at for at in times if -(2**63) <= at - times[0] < 2**63]
    log = open_log(
        sim_env(), horolog_timestamp_policy=policy,
        message_timestamp_before_max_ms=before, message_timestamp_after_max_ms=after,
    )  # fmt: skip
    low, high = bounds(NOW, before, after)
    bad = [at != -1 and not low <= at <= high for at in reach]
    if not any(bad):
        append(log, *reach)
        return
    made = rewrite(log, reach)
    store(log, made)
    kept = {record.offset: record.timestamp for record in records_of(log)}
    if policy == "quarantine":
        assert kept == {at: reach[at] for at, is_bad in enumerate(bad) if not is_bad}
        return
    ends = (max(low, 0), high) if policy == "clamp" else (NOW, NOW)
    assert kept == {
        at: min(max(reach[at], ends[0]), ends[1]) if is_bad else reach[at]
        for at, is_bad in enumerate(bad)
    }


def test_a_clamped_time_is_never_before_1970() -> None:
    log = open_log(
        sim_env(),
        horolog_timestamp_policy="clamp",
        message_timestamp_before_max_ms=NOW + 1,  # the bound itself would mean: no time
    )
    store(log, rewrite(log, [-2, NOW]))
    assert records_of(log)[0].timestamp == 0


def test_a_compacted_topic_wants_keys_under_every_policy() -> None:
    for policy in ("accept", "clamp", "restamp", "quarantine"):
        log = policy_log(policy, cleanup_policy=frozenset({"compact"}))
        with pytest.raises(InvalidRecordError) as caught:
            append(log, NOW, NOW * 1000)
        assert caught.value.code == ErrorCode.INVALID_RECORD
        assert [index for index, _ in caught.value.record_errors] == [0, 1]
        assert caught.value.dirty is None or not caught.value.dirty.findings


def test_headers_that_make_a_batch_enormous_are_refused() -> None:
    log = policy_log("quarantine", max_decompressed_message_bytes=5000)
    with pytest.raises(TooLarge, match="5000 bytes"):
        rewrite(log, [0] * 100, codec=Codec.ZSTD)


def test_log_append_time_asks_no_questions() -> None:
    log = policy_log("quarantine", message_timestamp_type="LogAppendTime")
    result = append(log, *TIMES)
    assert (result.dirty, result.log_append_time_ms) == (None, NOW)


def findings(result: AppendResult) -> list[tuple[str, str, str, int]]:
    assert result.dirty is not None
    return [(f.direction, f.reason, f.action, f.count) for f in result.dirty.findings]


@pytest.mark.parametrize(
    ("clock", "expired"),
    [("record", True), ("earlier", True), ("arrival", False), ("later", False)],
)
def test_expired_on_arrival_is_told_where_record_times_decide(clock: str, expired: bool) -> None:
    log = open_log(sim_env(), retention_ms=7 * DAY, horolog_retention_clock=clock)
    fresh = append(log, NOW - 7 * DAY, NOW)
    assert fresh.dirty is None
    old = append(log, NOW - 7 * DAY - 1, NOW, NOW // 1000)
    if not expired:
        assert old.dirty is None
        return
    assert findings(old) == [
        ("expired", "bound", "stored", 1),
        ("expired", "seconds", "stored", 1),
    ]


def test_nothing_expires_where_nothing_is_deleted_by_time() -> None:
    for changed in (
        {"retention_ms": -1},
        {"cleanup_policy": frozenset({"compact"})},
        {"message_timestamp_type": "LogAppendTime"},
    ):
        log = open_log(sim_env(), **changed)
        assert append(log, 5, key=b"k").dirty is None


def test_what_lies_before_the_instant_of_retention_has_expired() -> None:
    log = open_log(sim_env(), retention_ms=-1, horolog_retention_before_timestamp=NOW - 10)
    assert append(log, NOW - 10).dirty is None
    assert findings(append(log, NOW - 11)) == [("expired", "bound", "stored", 1)]


def test_far_in_the_future_is_told_however_wide_the_bounds() -> None:
    log = open_log(sim_env(), message_timestamp_after_max_ms=2**63 - 1)
    assert append(log, NOW + FAR_FUTURE_MS).dirty is None
    far = append(log, NOW + FAR_FUTURE_MS + 1, 2_700_000_000_000, NOW * 1000)
    assert findings(far) == [
        ("future", "bound", "stored", 2),
        ("future", "microseconds", "stored", 1),
    ]


@pytest.mark.parametrize(
    ("times", "flags"),
    [
        ([NOW], 0),
        ([NOW * 1000], DIRTY_FUTURE),
        ([0], DIRTY_PAST),
        ([0, NOW * 1000, -1], DIRTY_PAST | DIRTY_FUTURE | UNTIMED),
        ([-1], UNTIMED),
    ],
)
def test_the_zone_map_says_what_was_stored(times: list[int], flags: int) -> None:
    log = policy_log("accept")
    append(log, *times)
    assert zone_of(log).flags & ~GAP_BITS == flags


@pytest.mark.parametrize("policy", ["clamp", "restamp", "quarantine"])
def test_mended_batches_leave_the_zone_map_clean(policy: str) -> None:
    log = policy_log(policy)
    store(log, rewrite(log, [0, NOW * 1000, NOW]))
    zone = zone_of(log)
    assert zone.flags == 0
    assert NOW - DAY <= zone.min_timestamp <= zone.max_timestamp <= NOW + HOUR


def zone_of(log: Log):  # type: ignore[no-untyped-def]
    indexes = log.snapshot.active.indexes
    assert indexes is not None
    return indexes.zones.open_zone


def test_the_skew_is_that_of_the_latest_record() -> None:
    log = open_log(sim_env())
    assert append(log, NOW - 500, NOW - 20, -1).skew_ms == 20
    assert append(log, NOW + 70).skew_ms == -70
    assert append(log, -1).skew_ms is None
    stamping = open_log(sim_env(), message_timestamp_type="LogAppendTime")
    assert append(stamping, NOW - 3).skew_ms == 3


@pytest.mark.parametrize("policy", ["reject", "accept", "clamp", "restamp", "quarantine"])
def test_each_record_of_a_large_batch_is_counted_once(policy: str) -> None:
    log = policy_log(policy, max_message_bytes=10**8)
    times = [(NOW, NOW * 1000, NOW // 1000)[at % 3] for at in range(10_000)]
    seen = _dirty(lambda: append(log, *times), log)
    assert {(f.direction, f.reason): (f.count, f.first, f.last) for f in seen} == {
        (Direction.PAST, Suspicion.SECONDS): (3333, 2, 9998),
        (Direction.FUTURE, Suspicion.MICROSECONDS): (3333, 1, 9997),
    }


def _dirty(act: Callable[[], AppendResult], log: Log) -> tuple[DirtyFinding, ...]:
    try:
        dirty = act().dirty
    except InvalidRecordError as error:
        dirty = error.dirty
    except MistimedBatch as mistimed:
        dirty = store(log, rewritten(mistimed, ORIGIN, Scratch())).dirty
    assert dirty is not None
    return dirty.findings
