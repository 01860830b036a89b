"""Views: batches, segments, index entries and partitions, against the log that they speak of."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.decode.schemas import VIEWS
from pipeline.errors import BadOption
from pipeline.sources.options import parse
from pipeline.sources.partition_view import PartitionView
from pipeline.sources.view_rows import partition_rows
from pipeline.spark.views import ViewReader
from protocol.records.compression import Codec
from storage.log.log import Log
from tests.support.records.logs import append
from tests.support.spark.pipeline_logs import NOON_MS, directory_log, disordered


@pytest.fixture
def log(tmp_path: Path) -> Log:
    made = directory_log(tmp_path)
    disordered(made, 3)
    append(made, NOON_MS, NOON_MS + 1, codec=Codec.ZSTD)
    made.close()
    return made


def rows(folder: Path, view: str, **options: str) -> list[dict[str, Any]]:
    parsed = parse({"log_dirs": str(folder), "subscribe": "t", "view": view, **options})
    reader = ViewReader(parsed, VIEWS[view])
    return [
        row
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


def test_batches_account_for_every_offset(tmp_path: Path, log: Log) -> None:
    found = rows(tmp_path, "batches")

    assert sum(row["recordCount"] for row in found) == log.snapshot.log_end_offset
    assert [row["baseOffset"] for row in found[1:]] == [row["lastOffset"] + 1 for row in found[:-1]]
    assert {row["segment"] for row in found} == {s.base_offset for s in log.snapshot.segments}
    last = found[-1]
    assert (last["codec"], last["maxTimeMs"], last["isControl"]) == ("zstd", NOON_MS + 1, False)
    assert [
        row["baseOffset"] for row in rows(tmp_path, "batches", endingOffsets='{"t":{"0":1}}')
    ] == [0]


def test_segments_have_both_times_where_a_zone_map_has_them(tmp_path: Path, log: Log) -> None:
    found, batches = rows(tmp_path, "segments"), rows(tmp_path, "batches")

    for row in found:
        inside = [each for each in batches if each["segment"] == row["baseOffset"]]
        assert row["maxTimeMs"] == max(each["maxTimeMs"] for each in inside)
        assert row["minTimeMs"] <= min(each["baseTimeMs"] for each in inside)
        assert 0 < row["firstArrivalMs"] <= row["lastArrivalMs"]
    assert [row["isActive"] for row in found] == [False] * (len(found) - 1) + [True]
    assert sum(row["sizeBytes"] for row in found) == log.snapshot.size_bytes
    append(directory_log(tmp_path), NOON_MS)
    assert rows(tmp_path, "segments")[-1]["minTimeMs"] is None


def test_index_entries_and_partitions(tmp_path: Path, log: Log) -> None:
    batches = {row["position"]: row for row in rows(tmp_path, "batches") if not row["segment"]}
    offsets = [row for row in rows(tmp_path, "offset_index") if not row["segment"]]
    times = [row for row in rows(tmp_path, "time_index") if not row["segment"]]

    assert all(batches[row["position"]]["lastOffset"] == row["offset"] for row in offsets)
    assert len(offsets) > 5
    assert times[-1]["timestampMs"] == max(each["maxTimeMs"] for each in batches.values())
    (partition,) = rows(tmp_path, "partitions")
    assert partition["endOffset"] == log.snapshot.log_end_offset
    assert partition["sizeBytes"] == log.snapshot.size_bytes


def test_what_a_view_has_not_is_refused() -> None:
    options = parse({"log_dirs": "/data", "subscribe": "t", "view": "segments"})

    with pytest.raises(BadOption, match="view=segments has no column value"):
        ViewReader(options, pa.schema([pa.field("value", pa.binary())]))
    with pytest.raises(BadOption, match="view=segments reads files, and t-0 is not on this"):
        partition_rows("segments", PartitionView("t", 0, "", 0, 9))
