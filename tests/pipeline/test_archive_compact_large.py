"""Files whose values unpack to more than 32-bit offsets can say are put together all the same."""

import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.sinks.archive.compact import Merge, merge_files
from pipeline.sinks.archive.merge import MergedPart, merged_groups, merged_schema
from pipeline.sinks.archive.values import CountsDoNotClose, Layout, TableKind, WrittenFile
from pipeline.sinks.archive.writer import ROW_GROUP_ROWS

VALUE = 16 << 20
GROUP = 4
ROWS = 72
"""Of each of the two files: 1.1 GiB."""
SCHEMA = pa.schema([
    pa.field("partition", pa.int32()), pa.field("offset", pa.int64()),
    pa.field("value", pa.binary()),
])  # fmt: skip
FOLDER = "records/topic=t/event_date=2026-01-01"


def write(root: Path, name: str, offsets: list[int], size: int, partition: int = 0) -> WrittenFile:
    """A file of values that are large, and small once they are packed."""
    path = root / FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for first in range(0, len(offsets), GROUP):
            some = offsets[first : first + GROUP]
            values = [bytes([offset % 251]) * size for offset in some]
            columns = [[partition] * len(some), some, values]
            writer.write_table(pa.table(columns, schema=SCHEMA))
    return WrittenFile(
        TableKind.RECORDS, f"{FOLDER}/{name}", len(offsets), path.stat().st_size, offsets[0],
        offsets[-1], 0, 0, {"topic": "t"},
    )  # fmt: skip


def merge(root: Path) -> None:
    """In a process of its own, whose memory is then known."""
    files = tuple(
        write(root, f"{n}.parquet", list(range(n * ROWS, (n + 1) * ROWS)), VALUE) for n in (0, 1)
    )
    layout = Layout(str(root), staged=False, keeps_topic=False)
    made = merge_files(Merge(f"{FOLDER}/m.parquet", files, (None, None)), layout)
    assert made.rows == 2 * ROWS
    at = 0
    with pq.ParquetFile(root / made.path) as file:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=["offset", "value"]).to_pylist()
            assert 0 < len(rows) <= 9, "128 MiB"
            for row in rows:
                assert row == {"offset": at, "value": bytes([at % 251]) * VALUE}
                at += 1
    assert at == 2 * ROWS
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def test_more_than_32_bits_of_values(tmp_path: Path) -> None:
    """2.3 GiB, and never more than a part of it in memory."""
    assert 2 * ROWS * VALUE > 2**31
    done = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.test_archive_compact_large", tmp_path],
        capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1500


def test_rows_that_alternate_between_files(tmp_path: Path) -> None:
    """And row groups no larger than was asked for."""
    even = write(tmp_path, "even.parquet", list(range(0, 100, 2)), 1000)
    odd = write(tmp_path, "odd.parquet", list(range(1, 100, 2)), 1000)
    other = write(tmp_path, "other.parquet", list(range(50)), 1000, partition=1)
    parts = [MergedPart(tmp_path / each.path, "a" * 32) for each in (other, odd, even)]
    groups = list(merged_groups(parts, merged_schema(parts), group_bytes=10_000))
    assert all(len(each) < 12 < ROW_GROUP_ROWS for each in groups)
    rows = pa.concat_tables(groups)
    assert rows.column("offset").to_pylist() == [*range(100), *range(50)]
    assert rows.column("partition").to_pylist() == [0] * 100 + [1] * 50
    assert set(rows.column("topicId").to_pylist()) == {"a" * 32}


def test_a_file_in_disorder_is_told(tmp_path: Path) -> None:
    file = write(tmp_path, "a.parquet", [5, 3, 4], 10)
    part = MergedPart(tmp_path / file.path)
    with pytest.raises(CountsDoNotClose, match="not in order"):
        list(merged_groups([part], merged_schema([part])))


if __name__ == "__main__":
    merge(Path(sys.argv[1]))
