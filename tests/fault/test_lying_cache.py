"""Real file systems keep in the page cache, as clean, what an fsync failed to store."""

import os
from pathlib import Path

import pytest

from storage.errors import DiskError
from storage.log.log import Log
from storage.posix import PosixFile, PosixFileSystem, real_env
from storage.recovery.loading import LoadHints
from tests.support.disk.lying_disk import LyingDisk, lying_disk
from tests.support.records.logs import append, make_durable, open_log, records_of

PRODUCER = {"producer_id": 7, "producer_epoch": 0}


FRAME_BYTES = 72  # of a batch around one value of such a size


def sent(log: Log, sequence: int, letter: bytes) -> bool:
    """One record of the producer, in 75 whole pages; whether it was known already."""
    value = letter * (75 * 4096 - FRAME_BYTES)
    batch = {"value": value, "base_sequence": sequence, **PRODUCER}
    return append(log, 1000, acks_all=True, **batch).duplicate


def started(disk: LyingDisk, recovery_point: int) -> Log:
    known = LoadHints(is_clean=False, recovery_point=recovery_point)
    return open_log(real_env(), known, path=f"{disk.path}/data/t-0")


def letters(log: Log) -> list[bytes]:
    return [record.value[:1] for record in records_of(log) if record.value]


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_retry_after_a_failed_sync_and_a_restart_survives_a_power_cut(
    tmp_path: Path, kind: str
) -> None:
    with lying_disk(tmp_path, kind) as disk:
        log = started(disk, 0)
        sent(log, 0, b"a")
        make_durable(log)
        path = log.snapshot.active.file().path
        assert not log.snapshot.active.size_bytes % 4096
        disk.let_writes_fail(path)
        sent(log, 1, b"b")
        with pytest.raises(DiskError):
            make_durable(log)
        log.abandon()
        disk.heal()

        shown = Path(path).read_bytes()
        with Path(path).open("r+b") as file:
            os.fsync(file.fileno())  # says yes
        assert shown.count(b"b") >= 75 * 4096 - FRAME_BYTES, "nothing to be misled by"
        log = started(disk, 1)
        assert letters(log) == [b"a"]
        assert not sent(log, 1, b"b")
        make_durable(log)
        log.abandon()
        del log
        disk.cut_power()
        assert letters(started(disk, 2)) == [b"a", b"b"]


def test_a_cache_counts_as_dropped_only_when_nothing_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = PosixFileSystem().open(f"{tmp_path}/a", create=True)
    file.write_at(0, bytes(5 << 20))
    assert not file.drop_cache(0), "what is not synced cannot be dropped"
    file.sync()
    if not file.drop_cache(0):
        pytest.skip("the file system of the temporary directory drops nothing")
    file.read_at((4 << 20) + 5000, 1)
    assert file.drop_cache(4 << 20)
    file.read_at((4 << 20) + 5000, 1)
    monkeypatch.setattr(PosixFile, "let_go", lambda self, position, size: None)
    assert not file.drop_cache(4 << 20)
