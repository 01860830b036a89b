"""Markers that the broker appends: what they end, what readers are told, what a crash leaves."""

from typing import Any

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import read_header
from protocol.records.compression import Codec
from protocol.records.markers import ABORT, COMMIT, Marker, build_marker, marker_of
from storage.env import Env
from storage.files.layout import TXN_INDEX, TXN_SUM, segment_name
from storage.index.txn_index import AbortedTxn
from storage.log.log import Log
from storage.segment.log_snapshot import AppendResult
from storage.validation.internal_batch import own_batch
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import sim_env
from tests.support.records.logs import (
    CLEAN,
    LOG_PATH,
    UNCLEAN,
    append,
    make_durable,
    open_log,
    reopened,
)

NOW = 1_700_000_000_000


def write(log: Log, producer: int, sequence: int = 0, **batch: Any) -> AppendResult:
    """One record in a transaction."""
    given = {"producer_epoch": 0, "base_sequence": sequence, "transactional": True, **batch}
    return append(log, NOW, producer_id=producer, **given)


def end(log: Log, producer: int, kind: int, epoch: int = 0, **options: Any) -> AppendResult:
    """The marker of a transaction."""
    marker = build_marker(Marker(kind, 3), producer, epoch, NOW)
    given = {"acks_all": False, "leader_epoch": 0, **options}
    return log.append_own(own_batch(marker, NOW), **given)


def aborts(log: Log) -> list[AbortedTxn]:
    """All that readers of the whole log are told."""
    return log.search.aborted(0, log.snapshot.log_end_offset)


def stable(log: Log) -> int:
    return log.snapshot.last_stable_offset


def test_a_marker_is_kafkas() -> None:
    marker = build_marker(Marker(COMMIT, 5), 7, 2, NOW)
    header = read_header(marker)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, -1)
    assert header.is_control
    assert header.is_transactional
    assert bytes(marker[61:]).hex() == "200000000800000001" + "0c000000000005" + "00"
    assert marker_of(memoryview(marker)) == Marker(COMMIT, 5)


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_committed_readers_wait_for_the_marker(kind: int) -> None:
    log = open_log()
    write(log, 7)
    append(log, NOW)
    assert (stable(log), log.snapshot.high_watermark) == (0, 2)
    assert end(log, 7, kind).base_offset == 2
    assert stable(log) == 3
    assert aborts(log) == ([AbortedTxn(7, 0, 2, 3)] if kind == ABORT else [])


def test_the_earliest_open_transaction_holds_readers_up() -> None:
    log = open_log()
    write(log, 7)
    write(log, 8)
    end(log, 8, ABORT)
    assert stable(log) == 0
    assert aborts(log) == [AbortedTxn(8, 1, 2, 0)]
    end(log, 7, COMMIT)
    assert stable(log) == 4


def test_what_is_hidden_until_it_is_durable_is_not_stable() -> None:
    log = open_log(horolog_durability="by-acks")
    write(log, 7)
    end(log, 7, COMMIT, acks_all=True)
    assert stable(log) == 0
    make_durable(log)
    assert stable(log) == 2


def test_sequences_go_on_in_the_next_transaction_of_the_same_epoch() -> None:
    log = open_log()
    write(log, 7)
    end(log, 7, COMMIT)
    with pytest.raises(KafkaError) as refused:
        write(log, 7, sequence=5)
    assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(log, 7, sequence=1)


def test_a_marker_of_a_newer_epoch_fences_the_producer() -> None:
    log = open_log()
    write(log, 7)
    end(log, 7, ABORT, epoch=1)
    with pytest.raises(KafkaError) as refused:
        write(log, 7, sequence=1)
    assert refused.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert write(log, 7, producer_epoch=1).base_offset == 2


def test_a_marker_of_an_old_epoch_is_refused() -> None:
    log = open_log()
    write(log, 7, producer_epoch=4)
    with pytest.raises(KafkaError) as refused:
        end(log, 7, ABORT, epoch=3)
    assert refused.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert stable(log) == 0


def test_a_marker_without_data_ends_nothing() -> None:
    log = open_log()
    end(log, 7, ABORT)
    assert stable(log) == 1
    assert aborts(log) == []


@pytest.mark.parametrize(
    "settings",
    [{"compression_type": "lz4"}, {"message_timestamp_type": "LogAppendTime"}],
    ids=["lz4", "LogAppendTime"],
)
def test_a_marker_is_never_packed_and_has_the_logs_time(settings: dict[str, Any]) -> None:
    env = sim_env()
    log = open_log(env, **settings)
    write(log, 7)
    end(log, 7, ABORT)
    data = log.read(1, 1 << 20, up_to=2, min_one_batch=True).read()
    header = read_header(data)
    assert header.codec is Codec.NONE
    assert header.is_log_append_time == ("message_timestamp_type" in settings)
    assert marker_of(memoryview(data)) == Marker(ABORT, 3)


@pytest.mark.parametrize("known", [CLEAN, UNCLEAN], ids=["clean", "crash"])
def test_a_start_finds_what_was_aborted_and_what_is_open(known: Any) -> None:
    env = sim_env()
    log = _with_history(env)
    told, before = aborts(log), stable(log)
    if known is UNCLEAN:
        env.fs.remove(f"{LOG_PATH}/{segment_name(3, TXN_INDEX)}")
        log.abandon()
        again = open_log(env, known)
    else:
        again = reopened(log, env, known)
    assert aborts(again) == told
    assert stable(again) == before == 7
    end(again, 9, ABORT)
    assert stable(again) == again.snapshot.log_end_offset
    assert aborts(again)[-1] == AbortedTxn(9, 7, 8, 9)


def test_a_damaged_index_of_aborts_is_made_anew() -> None:
    env = sim_env()
    log = _with_history(env)
    told = aborts(log)
    log.close()
    file = env.fs.open(f"{LOG_PATH}/{segment_name(3, TXN_INDEX)}")
    file.truncate(20)
    file.close()
    assert aborts(open_log(env, CLEAN)) == told


@pytest.mark.parametrize("suffix", [TXN_INDEX, TXN_SUM])
def test_a_changed_bit_in_an_index_of_aborts_is_never_believed(suffix: str) -> None:
    fs = SimFileSystem()
    env = sim_env(fs=fs)
    log = _with_history(env)
    told, before = aborts(log), stable(log)
    log.close()
    names = [f"{LOG_PATH}/{segment_name(base, suffix)}" for base in (0, 3)]
    for name in names:
        for bit in range(8 * len(fs.read_bytes(name))):
            disk = fs.after_kill()
            file = disk.open(name)
            file.write_at(bit // 8, bytes([file.read_at(bit // 8, 1)[0] ^ 1 << bit % 8]))
            file.close()
            again = open_log(sim_env(fs=disk), CLEAN)
            assert (aborts(again), stable(again)) == (told, before), (name, bit)
            assert disk.read_bytes(name) == fs.read_bytes(name)


def test_an_index_of_aborts_that_is_gone_is_missed() -> None:
    env = sim_env()
    log = _with_history(env)
    told = aborts(log)
    log.close()
    env.fs.remove(f"{LOG_PATH}/{segment_name(3, TXN_INDEX)}")
    assert aborts(open_log(env, CLEAN)) == told


def test_an_index_of_aborts_without_a_checksum_is_believed() -> None:
    """As a Kafka leaves it."""
    env = sim_env()
    log = _with_history(env)
    told = aborts(log)
    log.close()
    for base in (0, 3):
        env.fs.remove(f"{LOG_PATH}/{segment_name(base, TXN_SUM)}")
    assert aborts(open_log(env, CLEAN)) == told


def _with_history(env: Env) -> Log:
    """Aborts in three segments, one of a transaction that began in an earlier one; 9 is open."""
    log = open_log(env)
    write(log, 7)
    write(log, 8)
    end(log, 7, ABORT)
    log.roll()
    end(log, 8, ABORT)
    write(log, 7, sequence=1)
    end(log, 7, COMMIT)
    log.roll()
    end(log, 7, ABORT)
    write(log, 9)
    make_durable(log)
    assert aborts(log) == [AbortedTxn(7, 0, 2, 1), AbortedTxn(8, 1, 3, 4)]
    return log


def test_an_index_that_cannot_be_written_is_written_later() -> None:
    fs = SimFileSystem()
    env = sim_env(fs=fs)
    log = open_log(env)
    write(log, 7)
    fs.inject("write", path=TXN_INDEX)
    end(log, 7, ABORT)
    told = aborts(log)
    assert told == [AbortedTxn(7, 0, 1, 2)]
    assert not fs.read_bytes(f"{LOG_PATH}/{segment_name(0, TXN_INDEX)}")
    log.roll()
    assert aborts(reopened(log, env, CLEAN)) == told
