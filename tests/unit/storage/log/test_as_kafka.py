"""Rules that a comparison of many histories with a real Kafka 4.3 taught (semantics.md 1, 3, 7).

The whole comparison is tests/conformance/test_differential.py; here is each finding in small.
"""

from collections.abc import Callable

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.builder import build_batch
from storage.log.log import Log
from tests.support.disk.simenv import sim_env
from tests.support.records.logs import append, append_bytes, open_log, reopened

NOW = 1_700_000_000_000


def code_of(act: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        act()
    return caught.value.code


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.snapshot.segments]


def idempotent(sequence: int, *, size: int = 10, at: int = NOW) -> bytearray:
    return build_batch(
        [(at, b"k", bytes(size))], producer_id=5, producer_epoch=0, base_sequence=sequence
    )


def test_what_is_wrong_with_the_records_is_told_before_the_segment_is_too_small() -> None:
    log = open_log(segment_bytes=90, message_timestamp_after_max_ms=0)
    refused = code_of(lambda: append(log, NOW * 1000, value=bytes(200)))
    assert refused == ErrorCode.INVALID_TIMESTAMP


def test_that_it_is_one_whole_batch_is_asked_before_its_size_and_its_checksum() -> None:
    log = open_log(max_message_bytes=100)
    batch = build_batch([(NOW, None, bytes(200))])
    assert code_of(lambda: append_bytes(log, batch[:-1])) == ErrorCode.INVALID_RECORD
    assert code_of(lambda: append_bytes(log, batch * 2)) == ErrorCode.INVALID_RECORD
    shifted = build_batch([(NOW, None, bytes(200))], base_offset=7)
    shifted[-1] ^= 1
    assert code_of(lambda: append_bytes(log, shifted)) == ErrorCode.INVALID_RECORD


def test_bytes_between_index_entries_count_from_the_start_of_the_broker() -> None:
    env = sim_env()
    log = open_log(env, index_interval_bytes=0)
    append(log, NOW)
    append(log, NOW + 1)
    log = reopened(log, env)
    append(log, NOW + 2)  # not indexed, as if it were the segment's first
    append(log, NOW + 3)
    (segment,) = log.snapshot.segments
    assert segment.indexes is not None
    offsets = segment.indexes.offsets
    assert [offsets.entry(index).offset for index in range(offsets.entries)] == [1, 3]


def test_a_repeated_or_refused_batch_ends_a_full_segment() -> None:
    log = open_log(segment_bytes=190)
    append_bytes(log, idempotent(0))
    append_bytes(log, idempotent(1))
    assert append_bytes(log, idempotent(1)).duplicate
    assert bases(log) == [0, 2]
    append_bytes(log, idempotent(2))
    append_bytes(log, idempotent(3))
    assert (
        code_of(lambda: append_bytes(log, idempotent(9))) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    assert bases(log) == [0, 2, 4]
    assert append_bytes(log, idempotent(4)).base_offset == 4
    assert bases(log) == [0, 2, 4]


def test_the_index_interval_is_that_of_the_segment_s_beginning() -> None:
    log = open_log(index_interval_bytes=0)
    append(log, NOW)
    append(log, NOW + 1)
    log.reconfigure(open_log(index_interval_bytes=10_000).config)
    append(log, NOW + 2)
    (segment,) = log.snapshot.segments
    assert segment.indexes is not None
    assert segment.indexes.offsets.entries == 2


def test_no_bound_before_admits_the_smallest_time() -> None:
    log = open_log(message_timestamp_before_max_ms=2**63 - 1)
    append(log, -(2**63))
    assert log.snapshot.log_end_offset == 1


def test_settings_of_the_index_that_came_before_the_first_append_are_for_later_segments() -> None:
    log = open_log(index_interval_bytes=0)
    log.reconfigure(open_log(index_interval_bytes=10_000).config)
    append(log, NOW)
    append(log, NOW + 1)
    (segment,) = log.snapshot.segments
    assert segment.indexes is not None
    assert segment.indexes.offsets.entries == 1
