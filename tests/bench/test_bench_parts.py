"""The benchmark's own parts: frames are what they claim, answers are counted, verdicts are fair."""

import json
import re
import socket
import subprocess
import sys
import time
from itertools import islice, repeat
from pathlib import Path

import pytest

from protocol.apis.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from protocol.codec import decode, encode_bytes
from protocol.records.batch import crc_matches, read_header
from protocol.records.record import read_records
from tests.bench import process
from tests.bench.__main__ import CELLS
from tests.bench.cell import Cell, Figure
from tests.bench.frames import (
    PRODUCE_VERSION,
    SENTINEL,
    Template,
    batch_of,
    batches_over_time,
    produce,
)
from tests.bench.in_flight_cells import every_other
from tests.bench.pump import Pumped, percentile, pump
from tests.bench.results import CellResults, Verdict, as_json, verdict
from tests.bench.table import table
from tests.bench.wire import LENGTH, BenchFailed, Wire

HEADER_BYTES = 10 + len("bench") + 1  # key, version, correlation id, client id, no tags
# Figures that may be zero in the smallest size: a consumer has it all before the clock starts.
NONE_AT_ALL = {
    "as acquired",
    "beyond the map",
    "copied",
    "CPU",
    "early",
    "requests/GB",
    "rows/GB",
} | {f"consume-client-{size}" for size in ("100b", "1kb", "10kb")}
AGAIN = re.compile(r"fleet-ack-1|fleet-(ack|cost)-(5|20).*")
"""Cells that differ from another in a number alone, and take long to begin."""


def test_a_batch_holds_the_records_asked_for() -> None:
    records = read_records(memoryview(batch_of(100, 70, time_ms=5)))
    assert len(records) == 70
    assert {(record.timestamp, len(record.value or b"")) for record in records} == {(5, 100)}


def test_batches_move_on_in_time_with_a_right_checksum() -> None:
    batches = list(islice(batches_over_time(10, 3, first_ms=1000, step_ms=7), 3))
    for index, batch in enumerate(batches):
        header = read_header(memoryview(batch))
        assert crc_matches(memoryview(batch), 0, header)
        assert header.base_timestamp == header.max_timestamp == 1000 + 7 * index


def test_a_produce_frame_decodes_to_what_was_asked() -> None:
    batch = batch_of(10, 2)
    sent = produce("a-topic", batch, acks=-1)
    assert LENGTH.unpack_from(sent)[0] == len(sent) - LENGTH.size
    body = memoryview(sent)[LENGTH.size + HEADER_BYTES :]
    request = decode(ProduceRequest, PRODUCE_VERSION, body)
    assert request.acks == -1
    assert bytes(request.topic_data[0].partition_data[0].records) == batch


def test_a_template_changes_nothing_but_its_number() -> None:
    template = Template(b"before" + SENTINEL.to_bytes(8, "big") + b"after")
    assert template.with_number(258) == b"before\0\0\0\0\0\0\x01\x02after"
    assert template.with_number(0) == b"before" + bytes(8) + b"after"


def answer_of(topic: str, base_offset: int, error_code: int = 0) -> bytes:
    partition = PartitionProduceResponse(index=0, error_code=error_code, base_offset=base_offset)
    message = ProduceResponse(
        responses=[TopicProduceResponse(name=topic, partition_responses=[partition])]
    )
    body = bytes(5) + encode_bytes(message, PRODUCE_VERSION)
    return LENGTH.pack(len(body)) + body


@pytest.fixture
def broker_side() -> tuple[Wire, socket.socket]:
    """A wire, and the end of it where a broker would be."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        wire = Wire(f"127.0.0.1:{server.getsockname()[1]}")
        return wire, server.accept()[0]


def test_pumping_counts_answers_however_they_are_cut(
    broker_side: tuple[Wire, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.bench.pump.RECEIVE_BYTES", 13)
    wire, broker = broker_side
    with wire, broker:
        broker.sendall(b"".join(answer_of("t", offset) for offset in range(8)))
        done = pump(wire, "t", repeat(b"request", 8), depth=7)
    assert len(done.latencies_ns) == 7, "the first one warms up"


def test_pumping_notices_a_refusal_in_the_middle(
    broker_side: tuple[Wire, socket.socket],
) -> None:
    wire, broker = broker_side
    with wire, broker:
        answers = [answer_of("topic", 0), answer_of("topic", 1), answer_of("topic", -1, 2)]
        broker.sendall(b"".join(answers))
        with pytest.raises(BenchFailed, match="CORRUPT_MESSAGE"):
            pump(wire, "topic", repeat(b"request", 5), depth=2)


def test_percentiles_are_by_nearest_rank() -> None:
    values = list(range(100, 0, -1))
    assert (percentile(values, 50), percentile(values, 99), percentile([7], 99)) == (51, 100, 7)


def test_a_pumped_rate_is_requests_over_time() -> None:
    assert Pumped(2.0, [1_000_000] * 10).per_second == 5
    assert Pumped(2.0, [1_000_000] * 10).percentile_ms(50) == 1


HIGHER = Figure("rate", "MB/s", "higher", must=1.5, aim=3)
LOWER = Figure("p99", "ms", "lower", must=1, aim=0.5)
BOUNDED = Figure("ready", "s", "lower", under=0.5)


@pytest.mark.parametrize(
    ("figure", "ours", "theirs", "expected"),
    [
        (HIGHER, [10, 30, 20], [10], Verdict.MUST),
        (HIGHER, [30], [10], Verdict.AIM),
        (HIGHER, [14], [10], Verdict.MISSED),
        (LOWER, [10], [10], Verdict.MUST),
        (LOWER, [4], [10], Verdict.AIM),
        (LOWER, [11], [10], Verdict.MISSED),
        (HIGHER, [30], [], Verdict.UNJUDGED),
        (BOUNDED, [0.4], [], Verdict.MUST),
        (BOUNDED, [0.6], [4], Verdict.MISSED),
    ],
)
def test_verdicts(
    figure: Figure, ours: list[float], theirs: list[float], expected: Verdict
) -> None:
    results = CellResults(Cell("a-cell", (figure,), lambda peer, scale: {}))
    for name, values in (("ours", ours), ("theirs", theirs)):
        for value in values:
            results.add(name, {figure.name: value})
    assert verdict(results, figure, "ours", "theirs") is expected
    assert as_json([results], "ours", "theirs")[0]["figures"][0]["verdict"] == expected.value
    assert table([results], "ours", "theirs").row_count == 1


def test_every_other_record_is_accepted() -> None:
    assert every_other([(0, 4), (7, 8), (9, 9)]) == [(1, 1), (3, 3), (8, 8)]


def test_the_kernel_tells_about_a_process() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        try:
            deadline = time.monotonic() + 30
            while process.cpu_seconds(child.pid) < 0.05 and time.monotonic() < deadline:
                time.sleep(0.01)
            assert process.cpu_seconds(child.pid) >= 0.05
            assert process.peak_resident_mib(child.pid) >= process.resident_mib(child.pid) > 1
            assert process.open_files(child.pid) >= 3
            assert process.mappings(child.pid) > 5
        finally:
            child.kill()


@pytest.mark.slow
@pytest.mark.timeout(450)
def test_every_cell_runs_and_measures_something(tmp_path: Path) -> None:
    """All of it in the smallest size against our broker; figures are looked at, never judged."""
    report = tmp_path / "bench.json"
    names = [each.name for each in CELLS if not AGAIN.fullmatch(each.name)]
    size = ["--scale", "tiny", "--rounds", "1", "--json", str(report), "--cells", ",".join(names)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", *size],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=420,
    )  # fmt: skip
    assert report.exists(), done.stderr
    cells = json.loads(report.read_text())["cells"]
    assert {cell["cell"]: cell["failures"] for cell in cells if cell["failures"]} == {}
    for cell in cells:
        for figure in cell["figures"]:
            ours = figure["rounds"]["horolog"]
            assert len(ours) == 1, (cell["cell"], figure["name"])
            told = {cell["cell"], figure["name"]}
            assert ours[0] > 0 or told & NONE_AT_ALL, told
