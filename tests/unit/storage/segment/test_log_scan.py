"""A pass over a `.log` that is shorter than it ought to be comes to its end, with the fault."""

import pytest

from protocol.records.builder import build_batch
from storage.scan.log_scan import CUT_OFF, LogScan
from tests.support.disk.simenv import sim_env

BATCHES = [build_batch([(1, None, b"%d" % number * 50)], base_offset=number) for number in range(4)]
SIZE = sum(map(len, BATCHES))


@pytest.mark.parametrize("kept", [0, 30, len(BATCHES[0]), SIZE - 1])
@pytest.mark.parametrize("chunk_bytes", [16, 1000, SIZE * 2])
def test_a_file_that_ends_before_the_limit(kept: int, chunk_bytes: int) -> None:
    file = sim_env().fs.open("/0.log", create=True)
    file.write_at(0, b"".join(BATCHES)[:kept])
    scan = LogScan(file, limit=SIZE, chunk_bytes=chunk_bytes)
    rows = [row for chunk in scan.chunks() for row in chunk.rows]
    assert scan.fault == CUT_OFF
    whole = [sum(map(len, BATCHES[: count + 1])) for count in range(4)]
    assert len(rows) == sum(end <= kept for end in whole)
    assert scan.end_position == sum(row[5] for row in rows)


@pytest.mark.parametrize("chunk_bytes", [16, SIZE * 2])
def test_an_offset_too_far_on_is_the_fault_not_the_one_behind_it(chunk_bytes: int) -> None:
    """Unless it was given out with a chunk before: what was given out is never taken back."""
    file = sim_env().fs.open("/0.log", create=True)
    file.write_at(0, b"".join(BATCHES))
    file.write_at(len(BATCHES[0]) + 6, b"\x01")  # 1 becomes 257
    scan = LogScan(file, limit=SIZE, chunk_bytes=chunk_bytes)
    given = [row[1] for chunk in scan.chunks() for row in chunk.rows]
    is_whole = chunk_bytes > SIZE
    assert given == ([0] if is_whole else [0, 257])
    assert scan.next_offset == given[-1] + 1
    assert scan.end_position == sum(map(len, BATCHES[: len(given)]))
    assert scan.fault == "its offsets are out of order"


@pytest.mark.parametrize("below", [2, 3])
def test_an_offset_that_the_segment_cannot_have_ends_the_pass(below: int) -> None:
    file = sim_env().fs.open("/0.log", create=True)
    file.write_at(0, b"".join(BATCHES))
    scan = LogScan(file, limit=SIZE, below=below)
    assert [row[1] for chunk in scan.chunks() for row in chunk.rows] == list(range(below))
    assert scan.next_offset == below
