"""The numbers of semantics.md 13 through a real log on a real disk, byte for byte."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from protocol.records.builder import build_batch
from storage.env import Env
from storage.log.log import Log
from storage.posix import real_env
from tests.support.records.logs import append, open_log, records_of

EVERY_57TH = [(57, 4104), (114, 8208), (171, 12312)]
BASE_NAME = "00000000000000000000"


@pytest.fixture
def env() -> Env:
    return real_env()


def filled(env: Env, path: Path, time_of: Callable[[int], int], **settings: object) -> Log:
    log = open_log(env, path=str(path / "t-0"), **settings)
    for offset in range(200):
        append(log, time_of(offset))
    log.close()
    return log


def index_entries(path: Path) -> list[tuple[int, int]]:
    return list(struct.iter_unpack(">ii", (path / "t-0" / f"{BASE_NAME}.index").read_bytes()))


def time_entries(path: Path) -> list[tuple[int, int]]:
    return list(struct.iter_unpack(">qi", (path / "t-0" / f"{BASE_NAME}.timeindex").read_bytes()))


def test_one_record_lies_in_the_file_as_kafka_has_it(env: Env, tmp_path: Path) -> None:
    log = open_log(env, path=str(tmp_path / "t-0"))
    append(log, 1000)
    data = (tmp_path / "t-0" / f"{BASE_NAME}.log").read_bytes()
    assert (len(data), data[17:21].hex()) == (72, "b36be244")
    assert data[:8] == bytes(8)
    assert data[12:16] == bytes(4)


def test_log_append_time_is_stamped_over_it(env: Env, tmp_path: Path) -> None:
    class At5000:
        def now_ms(self) -> int:
            return 5000

        def monotonic(self) -> float:
            return 0.0

    stamped = Env(At5000(), env.fs, env.rng)
    log = open_log(stamped, path=str(tmp_path / "t-0"), message_timestamp_type="LogAppendTime")
    result = append(log, 1000)
    data = (tmp_path / "t-0" / f"{BASE_NAME}.log").read_bytes()
    assert result.log_append_time_ms == 5000
    assert (data[21:23].hex(), data[17:21].hex()) == ("0008", "f6c77b6b")
    assert struct.unpack(">qq", data[27:43]) == (1000, 5000)


def test_rising_times(env: Env, tmp_path: Path) -> None:
    filled(env, tmp_path, lambda offset: 1000 + offset)
    assert index_entries(tmp_path) == EVERY_57TH
    assert time_entries(tmp_path) == [(1057, 57), (1114, 114), (1171, 171), (1199, 199)]


def test_falling_times(env: Env, tmp_path: Path) -> None:
    filled(env, tmp_path, lambda offset: 3000 - offset)
    assert time_entries(tmp_path) == [(3000, 0)]


def test_times_that_rise_and_then_stay_low(env: Env, tmp_path: Path) -> None:
    filled(env, tmp_path, lambda offset: 1000 + offset if offset <= 99 else 500)
    assert time_entries(tmp_path) == [(1057, 57), (1099, 99)]


def test_no_times(env: Env, tmp_path: Path) -> None:
    filled(env, tmp_path, lambda offset: -1)
    assert time_entries(tmp_path) == []
    assert index_entries(tmp_path) == EVERY_57TH


def test_the_same_numbers_after_recovery(env: Env, tmp_path: Path) -> None:
    log = filled(env, tmp_path, lambda offset: 1000 + offset)
    for suffix in ("index", "timeindex"):
        (tmp_path / "t-0" / f"{BASE_NAME}.{suffix}").write_bytes(bytes(1200))
    log = open_log(env, path=str(tmp_path / "t-0"))
    assert len(records_of(log)) == 200
    log.close()
    assert index_entries(tmp_path) == EVERY_57TH
    assert time_entries(tmp_path) == [(1057, 57), (1114, 114), (1171, 171), (1199, 199)]


def test_entries_as_the_kip_writes_them(env: Env, tmp_path: Path) -> None:
    """KIP-33's text: all times up to T lie before N, and the last N is the next segment's base."""
    filled(env, tmp_path, lambda offset: 1000 + offset, horolog_time_index_entry="next")
    assert time_entries(tmp_path) == [(1057, 58), (1114, 115), (1171, 172), (1199, 200)]


def test_the_batch_is_what_an_independent_builder_makes(env: Env, tmp_path: Path) -> None:
    log = open_log(env, path=str(tmp_path / "t-0"))
    append(log, 1000)
    append(log, 2000)
    data = (tmp_path / "t-0" / f"{BASE_NAME}.log").read_bytes()
    assert data[72:] == build_batch([(2000, None, b"test")], base_offset=1, leader_epoch=0)
