"""What the files of a broker at work tell of the segment it writes, with few looks at the log."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.directories import segment_facts
from pipeline.directories.segment_facts import PartitionFacts, partition_facts
from storage.files.layout import OFFSET_INDEX, TIME_INDEX, ZONES
from storage.posix import real_env
from storage.scan.batch_walk import BatchPlace, batches
from storage.zones.rows import ROW_BYTES
from tests.support.spark.pipeline_logs import directory_log, disordered

FS = real_env().fs


def written(folder: Path, **settings: Any) -> Path:
    """A partition of one segment, with times that jump about."""
    log = directory_log(folder, segment_bytes=10_000_000, **settings)
    disordered(log, seed=7, batches=300, dirty=True)
    log.close()
    return folder / "t-0"


def told(path: Path) -> PartitionFacts:
    return partition_facts(FS, str(path), 0)


def forget(path: Path, suffix: str, left: float, entry_bytes: int) -> None:
    """As if that share of the file had been written, and the rest was in memory."""
    (file,) = path.glob(f"*{suffix}")
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * left) // entry_bytes * entry_bytes])


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[BatchPlace]:
    """The batches that were looked at one by one."""
    seen: list[BatchPlace] = []

    def seeing(*args: Any) -> Iterator[BatchPlace]:
        for place in batches(*args):
            seen.append(place)
            yield place

    monkeypatch.setattr(segment_facts, "batches", seeing)
    return seen


@pytest.mark.parametrize("left", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("times_left", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("zones_left", [0.95, 1.0])
def test_zones_stand_for_entries_that_are_not_in_the_files(
    tmp_path: Path, walked: list[BatchPlace], left: float, times_left: float, zones_left: float
) -> None:
    """Each file is written when its own entries are many enough."""
    path = written(tmp_path)
    everything = told(path)
    forget(path, OFFSET_INDEX, left, 8)
    forget(path, TIME_INDEX, times_left, 12)
    forget(path, ZONES, zones_left, ROW_BYTES)
    walked.clear()
    same_as(told(path), everything)
    assert len(walked) < 40, "of three hundred"


@pytest.mark.parametrize("harm", ["missing", "a bit", "of another log", "longer than the log"])
def test_zones_that_do_not_tell_are_not_asked(tmp_path: Path, harm: str) -> None:
    path = written(tmp_path)
    (log,) = path.glob("*.log")
    (zones,) = path.glob(f"*{ZONES}")
    rows = bytearray(zones.read_bytes())
    forget(path, OFFSET_INDEX, 0.1, 8)
    forget(path, TIME_INDEX, 0.1, 12)
    zones.unlink()
    if harm == "longer than the log":
        file = FS.open(str(log), write=False)
        ends = [place.position for place in batches(file, 0, file.size())]
        file.close()
        log.write_bytes(log.read_bytes()[: ends[200]])
    by_headers = told(path)
    if harm == "a bit":
        rows[-ROW_BYTES // 2] ^= 1
    elif harm == "of another log":
        (strange,) = written(tmp_path / "other", horolog_zone_bytes=5000).glob(f"*{ZONES}")
        rows = bytearray(strange.read_bytes()[: -3 * ROW_BYTES])
    if harm != "missing":
        zones.write_bytes(rows)
    same_as(told(path), by_headers)


def test_of_stamped_records_zones_have_another_time(tmp_path: Path) -> None:
    path = written(tmp_path, message_timestamp_type="LogAppendTime")
    everything = told(path)
    forget(path, OFFSET_INDEX, 0.1, 8)
    forget(path, TIME_INDEX, 0.1, 12)
    same_as(told(path), everything)


@pytest.mark.parametrize("zones_are", ["its own", "missing", "of another log", "cut", "noise"])
def test_the_first_record_of_a_time_is_found_whatever_the_zones_say(
    tmp_path: Path, zones_are: str
) -> None:
    log = directory_log(tmp_path, segment_bytes=10_000_000)
    known = disordered(log, seed=7, batches=300, dirty=True)
    log.close()
    path = tmp_path / "t-0"
    (zones,) = path.glob(f"*{ZONES}")
    if zones_are == "missing":
        zones.unlink()
    elif zones_are == "of another log":
        other = directory_log(tmp_path / "other", segment_bytes=10_000_000)
        disordered(other, seed=8, batches=300, dirty=True)
        other.close()
        (strange,) = (tmp_path / "other" / "t-0").glob(f"*{ZONES}")
        zones.write_bytes(strange.read_bytes())
    elif zones_are == "cut":
        forget(path, ZONES, 0.5, ROW_BYTES)
    elif zones_are == "noise":
        zones.write_bytes(random.Random(3).randbytes(10 * ROW_BYTES))
    dice = random.Random(5)
    for wanted in [at + dice.randrange(2) for _, at in dice.choices(known, k=40)]:
        found = segment_facts.find_record(FS, str(path), 0, wanted)
        expected = next(((offset, at) for offset, at in known if at >= wanted), None)
        assert expected == (None if found is None else (found.offset, found.timestamp_ms))


def same_as(found: PartitionFacts, expected: PartitionFacts) -> None:
    assert found.log == expected.log
    assert [each.record_ms for each in found.segments] == [
        each.record_ms for each in expected.segments
    ]
