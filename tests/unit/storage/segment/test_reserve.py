"""A busy segment reserves room ahead on the real disk, and gives back what it did not need."""

from pathlib import Path

from protocol.records.builder import build_batch
from storage.posix import real_env
from tests.support.records.logs import append_bytes, open_log, records_of

BATCH = bytes(build_batch([(1_700_000_000_000, b"k", bytes(1_000_000))]))


def taken_bytes(path: Path) -> int:
    return path.stat().st_blocks * 512


def test_room_is_reserved_ahead_and_given_back_at_the_end(tmp_path: Path) -> None:
    log = open_log(real_env(), path=str(tmp_path / "t-0"))
    file = tmp_path / "t-0" / "00000000000000000000.log"
    for _ in range(4):
        append_bytes(log, BATCH)
    small = taken_bytes(file)
    for _ in range(4):
        append_bytes(log, BATCH)
    assert file.stat().st_size == 8 * len(BATCH)
    assert small < 4 * len(BATCH) + 65536
    assert taken_bytes(file) > 8 * len(BATCH) + 100_000
    assert [record.offset for record in records_of(log)] == list(range(8))
    log.close()
    assert file.stat().st_size == 8 * len(BATCH)
    assert taken_bytes(file) < 8 * len(BATCH) + 65536
