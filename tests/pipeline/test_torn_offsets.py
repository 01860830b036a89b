"""A sector that never came leaves zeros where a batch has its offset, which no CRC covers: such a
batch is no record's, for readers of files either."""

from pathlib import Path

import pytest

from pipeline.errors import DamagedLog
from storage.files.layout import LOG, ZONES
from storage.posix import real_env
from storage.zones.rows import ROW_BYTES
from tests.support.records.logs import append, make_durable
from tests.support.records.proved_zones import judge_zones
from tests.support.spark.pipeline_logs import NOON_MS, checkpoint, directory_log, read_all

LOG_FILE, ZONES_FILE = f"{0:020d}{LOG}", f"{0:020d}{ZONES}"
BATCHES, IN_A_BATCH = 62, 4
ASKED = {"subscribe": "t"}


def filled(folder: Path) -> list[int]:
    """A partition as a broker leaves it that was killed; where each batch begins."""
    log = directory_log(folder, segment_bytes=1 << 20)
    starts = []
    for number in range(BATCHES):
        starts.append(log.snapshot.total_bytes)
        append(log, *(NOON_MS + 10 * number + at for at in range(IN_A_BATCH)), value=bytes(150))
    make_durable(log)
    checkpoint(folder, t_0=BATCHES * IN_A_BATCH)
    return starts


def lose_offset(folder: Path, start: int) -> None:
    path = folder / "t-0" / LOG_FILE
    data = bytearray(path.read_bytes())
    data[start : start + 8] = bytes(8)
    path.write_bytes(data)


@pytest.mark.parametrize("batch", [1, 30, BATCHES - 1])
@pytest.mark.parametrize(
    "times", [{}, {"startingTimestamp": str(NOON_MS + 5), "endingTimestamp": str(NOON_MS + 9000)}]
)
def test_a_batch_whose_offset_is_gone_is_told(
    tmp_path: Path, batch: int, times: dict[str, str]
) -> None:
    starts = filled(tmp_path)
    lose_offset(tmp_path, starts[batch])
    with pytest.raises(DamagedLog, match=rf"byte {starts[batch]}: offset 0 follows "):
        read_all({"log_dirs": str(tmp_path), **ASKED, **times}, ["offset"])


def test_what_lies_before_it_is_read_where_no_watermark_promises_more(tmp_path: Path) -> None:
    starts = filled(tmp_path)
    lose_offset(tmp_path, starts[30])
    rows = read_all({"log_dirs": str(tmp_path), "offline": "true", **ASKED}, ["offset"])
    assert [row["offset"] for row in rows] == list(range(30 * IN_A_BATCH))


def test_the_last_zone_ends_before_such_a_batch(tmp_path: Path) -> None:
    """Offsets of zones never run back, or a search by offset would pass over what it looks for."""
    starts = filled(tmp_path)
    rows = (tmp_path / "t-0" / ZONES_FILE).read_bytes()
    zones = [int.from_bytes(rows[at + 4 : at + 8]) for at in range(0, len(rows), ROW_BYTES)]
    for last in (at for at, start in enumerate(starts) if start > zones[-1]):
        folder = tmp_path / f"{last}"
        filled(folder)
        lose_offset(folder, starts[last])
        judge_zones(real_env().fs, str(folder / "t-0"))
