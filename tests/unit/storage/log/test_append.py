"""What an append accepts, refuses, stamps and answers (semantics.md 6, 7.3, 10)."""

from collections.abc import Callable

import pytest

from broker.runtime.wire_error import wire_error
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import read_header, seal, set_max_timestamp
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from storage.env import Env
from storage.errors import StorageError
from storage.log.log import InvalidRecordError, Log
from storage.validation.batch_rules import TIMESTAMP_SUMMARY
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng, SimClock, sim_env
from tests.support.histories.history_batches import misnumbered
from tests.support.records.logs import append, append_bytes, make_durable, open_log, records_of
from tests.support.worlds.inflating import many_headers

NOW = 1_700_000_000_000
HOUR = 3_600_000


def refusal(act: Callable[[], object]) -> KafkaError:
    with pytest.raises((KafkaError, StorageError)) as caught:
        act()
    error = caught.value
    return error if isinstance(error, KafkaError) else wire_error(error)


def test_offsets_follow_one_another() -> None:
    log = open_log()
    assert append(log, 1, 2, 3)[:2] == (0, 2)
    assert append(log, 4)[:2] == (3, 3)
    assert [record.offset for record in records_of(log)] == [0, 1, 2, 3]


def test_base_offset_and_epoch_are_written_and_the_crc_stays() -> None:
    log = open_log()
    append(log, 1)
    data = build_batch([(2, b"k", b"v")])
    crc = read_header(data).crc
    log.append(memoryview(data), acks_all=False, leader_epoch=3)
    stored = read_header(log.read(1, 1 << 20, up_to=2, min_one_batch=True).read())
    assert (stored.base_offset, stored.leader_epoch, stored.crc) == (1, 3, crc)
    assert log.leader_epoch == 3
    assert log.epochs.end_offset_of(0, log.snapshot.log_end_offset) == (0, 1)


def damaged(change: Callable[[bytearray], object], *, sealed: bool = True) -> bytearray:
    batch = build_batch([(1, b"k", b"v"), (2, b"k", b"v")])
    change(batch)
    if sealed:
        seal(batch, 0, len(batch))
    return batch


def put(batch: bytearray, at: int, data: bytes) -> None:
    batch[at : at + len(data)] = data


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        (bytearray(), ErrorCode.INVALID_RECORD),
        (bytearray(60), ErrorCode.INVALID_RECORD),
        (damaged(lambda b: put(b, 16, b"\x01")), ErrorCode.INVALID_RECORD),
        (damaged(lambda b: put(b, 8, b"\0\0\0\x05")), ErrorCode.CORRUPT_MESSAGE),
        (damaged(lambda b: put(b, len(b) - 3, b"Z"), sealed=False), ErrorCode.CORRUPT_MESSAGE),
        (damaged(lambda b: put(b, 7, b"\x01")), ErrorCode.INVALID_RECORD),
        (damaged(lambda b: put(b, 57, b"\0\0\0\x03")), ErrorCode.INVALID_RECORD),
        (damaged(lambda b: put(b, 57, b"\0\0\0\0")), ErrorCode.INVALID_RECORD),
        (damaged(lambda b: put(b, 22, b"\x20")), ErrorCode.INVALID_RECORD),
        (damaged(lambda b: put(b, 43, bytes(8))), ErrorCode.INVALID_RECORD),
        (damaged(lambda b: put(b, 22, b"\x07")), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (damaged(lambda b: put(b, 22, b"\x01")), ErrorCode.INVALID_RECORD),
        (damaged(lambda b: b.extend(b)), ErrorCode.INVALID_RECORD),
        (damaged(lambda b: b.pop()), ErrorCode.INVALID_RECORD),
    ],
)
def test_a_batch_that_is_not_exactly_one_sound_batch_is_refused(
    batch: bytearray, code: ErrorCode
) -> None:
    log = open_log()
    assert refusal(lambda: append_bytes(log, batch)).code == code
    assert log.snapshot.log_end_offset == 0
    assert append(log, 1).base_offset == 0


def test_sizes() -> None:
    log = open_log(max_message_bytes=100, segment_bytes=90)
    assert refusal(lambda: append(log, 1, value=bytes(80))).code == ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(lambda: append(log, 1, value=bytes(24))).code == ErrorCode.RECORD_LIST_TOO_LARGE
    append(log, 1, value=bytes(10))


def test_a_bomb_is_stopped() -> None:
    log = open_log(max_decompressed_message_bytes=10_000)
    bomb = build_batch([(1, None, bytes(200_000))], codec=Codec.GZIP)
    assert refusal(lambda: append_bytes(log, bomb)).code == ErrorCode.MESSAGE_TOO_LARGE


def test_every_record_with_a_bad_time_is_named() -> None:
    log = open_log(
        sim_env(), message_timestamp_after_max_ms=HOUR, message_timestamp_before_max_ms=HOUR
    )
    times = (NOW, NOW + HOUR, NOW + HOUR + 1, -1, NOW // 1000, NOW - HOUR)
    error = refusal(lambda: append(log, *times))
    assert isinstance(error, InvalidRecordError)
    assert (error.code, error.message) == (ErrorCode.INVALID_TIMESTAMP, TIMESTAMP_SUMMARY)
    assert [index for index, _ in error.record_errors] == [2, 4]
    assert "seconds" in error.record_errors[1][1]
    assert log.snapshot.log_end_offset == 0


def test_bounds_of_all_64_bits_admit_every_time() -> None:
    log = open_log(message_timestamp_before_max_ms=2**63 - 1)
    append(log, 2**63 - 1)
    append(log, 0)
    assert log.snapshot.log_end_offset == 2


def test_a_compacted_topic_wants_keys() -> None:
    log = open_log(cleanup_policy=frozenset({"compact"}))
    append(log, NOW, key=b"k")
    rows = [(NOW, b"k", b"v"), (NOW, None, b"v"), (NOW, None, b"v")]
    error = refusal(lambda: append_bytes(log, build_batch(rows)))
    assert isinstance(error, InvalidRecordError)
    assert error.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.record_errors] == [1, 2]


def test_a_record_without_key_is_bad_for_that_whatever_its_time() -> None:
    log = open_log(cleanup_policy=frozenset({"compact"}), message_timestamp_after_max_ms=HOUR)
    rows = [(NOW, b"k", b"v"), (NOW + 2 * HOUR, None, b"v")]
    error = refusal(lambda: append_bytes(log, build_batch(rows)))
    assert isinstance(error, InvalidRecordError)
    assert error.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.record_errors] == [1]

    error = refusal(lambda: append_bytes(log, build_batch([*rows, (NOW + 2 * HOUR, b"k", b"v")])))
    assert isinstance(error, InvalidRecordError)
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [1, 2]
    assert "key" in error.record_errors[0][1]


def test_log_append_time_takes_any_claim_and_stamps() -> None:
    env = sim_env()
    log = open_log(env, message_timestamp_type="LogAppendTime", message_timestamp_after_max_ms=0)
    result = append(log, 5, NOW * 3)
    assert result.log_append_time_ms == env.clock.now_ms()
    assert {record.timestamp for record in records_of(log)} == {env.clock.now_ms()}


def test_a_claim_of_log_append_time_is_withdrawn_or_refused() -> None:
    log = open_log()
    append_bytes(log, build_batch([(1000, None, b"v")], log_append_time=9))
    stored = read_header(log.read(0, 1 << 20, up_to=1, min_one_batch=True).read())
    assert (stored.is_log_append_time, stored.max_timestamp) == (False, 1000)
    stamping = open_log(message_timestamp_type="LogAppendTime")
    claimed = build_batch([(1000, None, b"v")], log_append_time=9)
    assert refusal(lambda: append_bytes(stamping, claimed)).code == ErrorCode.INVALID_TIMESTAMP


def test_a_header_that_lies_about_its_maximum_is_corrected() -> None:
    log = open_log()
    batch = build_batch([(1000, None, b"v"), (900, None, b"v")])
    set_max_timestamp(batch, 0, len(batch), 77)
    append_bytes(log, batch)
    stored = read_header(log.read(0, 1 << 20, up_to=2, min_one_batch=True).read())
    assert stored.max_timestamp == 1000
    assert log.search.first_at_or_after(1000, below=2) is not None


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"])
def test_batches_are_stored_in_the_topic_s_codec(codec: Codec, wanted: str) -> None:
    log = open_log(compression_type=wanted)
    values = [b"%d" % index * 50 for index in range(5)]
    rows = [(NOW + index, b"k", value) for index, value in enumerate(values)]
    append_bytes(log, build_batch(rows, codec=codec))
    stored = read_header(log.read(0, 1 << 20, up_to=5, min_one_batch=True).read())
    names = {"uncompressed": Codec.NONE, "producer": codec}
    assert stored.codec == names.get(wanted, Codec.__members__.get(wanted.upper()))
    assert [record.value for record in records_of(log)] == values


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize(
    ("deltas", "bad"),
    [([0, 7, 2], 1), ([0, 5_000_000, 2], 1), ([1, 0, 2], 0), ([0, 0, 2], 1), ([0, -1, 2], 1)],
)
def test_offsets_that_do_not_follow_one_another_are_refused(
    codec: Codec, deltas: list[int], bad: int
) -> None:
    log = open_log()
    rows = [(NOW, b"k", b"a"), (NOW, b"k", b"b"), (NOW, b"k", b"c")]
    error = refusal(lambda: append_bytes(log, misnumbered(rows, deltas, codec)))
    assert isinstance(error, InvalidRecordError)
    assert error.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.record_errors] == [bad]
    assert f"record {bad}" in error.message
    assert log.snapshot.log_end_offset == 0


@pytest.mark.parametrize(("headers", "is_refused"), [(100_000, False), (100_001, True)])
def test_a_record_has_as_many_headers_as_clients_read(headers: int, is_refused: bool) -> None:
    log = open_log(max_message_bytes=10_000_000)
    for codec in (Codec.NONE, Codec.ZSTD):
        batch = bytearray(many_headers(codec, headers))
        if is_refused:
            error = refusal(lambda batch=batch: append_bytes(log, batch))  # type: ignore[misc]
            assert error.code == ErrorCode.INVALID_RECORD
            assert "headers" in error.message
        else:
            append_bytes(log, batch)


def idempotent(sequence: int, *, epoch: int = 0, count: int = 1) -> bytearray:
    rows = [(NOW, b"k", b"v")] * count
    return build_batch(rows, producer_id=5, producer_epoch=epoch, base_sequence=sequence)


def test_a_resend_gets_its_old_offset_and_adds_nothing() -> None:
    log = open_log()
    for sequence in range(6):
        append_bytes(log, idempotent(sequence))
    again = append_bytes(log, idempotent(3))
    assert (again.duplicate, again.base_offset, again.last_offset) == (True, 3, 3)
    assert again.log_append_time_ms == NOW
    assert log.snapshot.log_end_offset == 6
    assert refusal(lambda: append_bytes(log, idempotent(0))).code == (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )


def test_gaps_in_sequence_and_old_epochs_are_refused() -> None:
    log = open_log()
    append_bytes(log, idempotent(0, epoch=1))
    codes = [
        refusal(lambda: append_bytes(log, idempotent(2, epoch=1))).code,
        refusal(lambda: append_bytes(log, idempotent(1, epoch=0))).code,
    ]
    assert codes == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH]
    assert append_bytes(log, idempotent(1, epoch=1)).base_offset == 1


def test_large_packed_batches_ask_for_a_lane() -> None:
    log = open_log()
    noise = SeededRng(1)
    body = b"".join(noise.uint64().to_bytes(8, "big") for _ in range(20_000))
    packed = build_batch([(1, None, body)], codec=Codec.LZ4)
    assert log.needs_lane(memoryview(packed))
    assert not log.needs_lane(memoryview(build_batch([(1, None, body)])))
    assert not log.needs_lane(memoryview(build_batch([(1, None, b"v")], codec=Codec.LZ4)))


def test_new_settings_count_from_the_next_batch() -> None:
    log = open_log()
    append(log, NOW, value=bytes(300))
    changed = open_log(max_message_bytes=100).config
    log.reconfigure(changed)
    assert refusal(lambda: append(log, NOW, value=bytes(300))).code == ErrorCode.MESSAGE_TOO_LARGE


def fill(log: Log) -> None:
    for _ in range(100):
        append(log, NOW, value=bytes(200))


def test_a_full_disk_refuses_writes_and_nothing_else_until_there_is_space() -> None:
    clock = SimClock()
    fs = SimFileSystem(clock=clock, capacity_bytes=3000)
    log = open_log(Env(clock, fs, SeededRng()))
    assert refusal(lambda: fill(log)).code == ErrorCode.KAFKA_STORAGE_ERROR
    before = log.snapshot
    assert len(records_of(log)) == before.log_end_offset
    assert log.files.fs.open(f"{log.files.path}/{0:020d}.log").size() == before.end_position
    fs.capacity_bytes = None
    assert append(log, NOW).base_offset == before.log_end_offset
    make_durable(log)
    assert log.durable_offset == before.log_end_offset + 1


def test_a_failed_write_leaves_no_trace() -> None:
    env = sim_env()
    log = open_log(env)
    append(log, NOW)
    env.fs.inject("write", path=".log")  # type: ignore[attr-defined]
    env.fs.inject("truncate", path=".log")  # type: ignore[attr-defined]
    assert refusal(lambda: append(log, NOW)).code == ErrorCode.KAFKA_STORAGE_ERROR
    assert append(log, NOW, value=b"x").base_offset == 1
    assert [record.value for record in records_of(log)] == [b"test", b"x"]
