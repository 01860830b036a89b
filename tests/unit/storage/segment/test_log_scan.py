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
