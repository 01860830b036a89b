"""Each call to the disk fails once: the log goes on or says that it does not, and loses nothing."""

import pytest

from storage.env import Env
from storage.errors import DiskError, StorageError
from storage.log.log import Log
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng, SimClock
from tests.support.records.logs import append, make_durable, open_log, records_of

OPERATIONS = ("write", "sync", "truncate", "create", "sync directory", "rename", "remove")
STEPS = 12


def lived(fs: SimFileSystem) -> tuple[Log, list[bytes], int]:
    """A log that was written to through whatever failed; what was acknowledged; the refusals."""
    log = open_log(Env(SimClock(), fs, SeededRng()), segment_bytes=300, index_interval_bytes=100)
    acknowledged: list[bytes] = []
    waiting: list[bytes] = []
    refused = 0
    for step in range(STEPS):
        value = b"%d" % step
        try:
            append(log, 1000 + step, value=value, acks_all=True)
        except StorageError:
            refused += 1
        else:
            waiting.append(value)
        try:
            make_durable(log)
        except DiskError:
            waiting.clear()  # nobody is told that these are safe
        else:
            acknowledged += waiting
            waiting.clear()
    return log, acknowledged, refused


@pytest.mark.parametrize("error", ["eio", "enospc"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_one_failing_call(operation: str, error: str) -> None:
    for skip in range(30):
        fs = SimFileSystem()
        open_log(Env(SimClock(), fs, SeededRng()), segment_bytes=300)
        fs.inject(operation, path="/data/t-0", error=error, skip=skip)
        try:
            log, acknowledged, refused = lived(fs)
        except DiskError:
            continue  # it could not be opened at all, and said so
        assert refused <= 1 or log.failed is not None, f"{operation} {skip}"
        visible = [record.value for record in records_of(log)]
        assert visible == acknowledged, f"{operation} {skip}"
        after = open_log(Env(SimClock(), fs.after_crash(skip), SeededRng()), segment_bytes=300)
        values = [record.value for record in records_of(after)]
        assert values[: len(acknowledged)] == acknowledged, f"{operation} {skip}"


@pytest.mark.parametrize("capacity", range(0, 4000, 150))
def test_any_size_of_disk(capacity: int) -> None:
    fs = SimFileSystem()
    open_log(Env(SimClock(), fs, SeededRng()), segment_bytes=300)
    fs.capacity_bytes = capacity
    log, acknowledged, refused = lived(fs)
    assert len(acknowledged) + refused == STEPS
    assert [record.value for record in records_of(log)] == acknowledged
    assert log.failed is None
    fs.capacity_bytes = None
    append(log, 5, value=b"after", acks_all=True)
    make_durable(log)
    for seed in range(3):
        after = open_log(Env(SimClock(), fs.after_crash(seed), SeededRng()), segment_bytes=300)
        assert [record.value for record in records_of(after)] == [*acknowledged, b"after"]
