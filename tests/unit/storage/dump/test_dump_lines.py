"""`horolog dump`: lines, JSON, exit status."""

import json
from pathlib import Path

import pytest

from broker.cli.main import main
from protocol.records.builder import build_batch
from tests.support.records.partition_samples import HEADER_RECORD, write_samples


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / f"{5:020d}.log"
    records = [(7, b"k\xff", "é".encode()), HEADER_RECORD]
    path.write_bytes(build_batch(records, base_offset=5))
    return path


def test_lines_are_kafka_s(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", "--print-data-log", str(log)]) == 0
    dumping, start, batch, first, second = capsys.readouterr().out.splitlines()
    assert (dumping, start) == (f"Dumping {log}", "Log starting offset: 5")
    assert batch.startswith("baseOffset: 5 lastOffset: 6 count: 2 baseSequence: -1")
    assert "deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 7 size:" in batch
    assert first.endswith("sequence: -1 headerKeys: [] key: k\ufffd payload: é")
    assert "headerKeys: [h,g,ä]" in second


def test_json_has_one_object_a_line_and_loses_no_byte(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dump", "--print-data-log", "--json", str(log)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["kind"] for row in rows] == ["start", "batch", "record", "record"]
    assert all(row["file"] == str(log) for row in rows)
    assert rows[1]["deleteHorizonMs"] is None
    assert rows[2]["keyBase64"] == "a/8="
    assert (rows[2]["timestampType"], rows[2]["timestamp"]) == ("CreateTime", 7)
    assert rows[3]["headers"] == [
        {"key": "h", "value": "1"},
        {"key": "g", "value": None},
        {"key": "ä", "valueBase64": "/w=="},
    ]


def test_damage_is_one_line_on_standard_error_and_status_3(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log.write_bytes(log.read_bytes() + b"torn")
    assert main(["dump", "--json", str(log)]) == 3
    output = capsys.readouterr()
    assert json.loads(output.out.splitlines()[-1])["kind"] == "damage"
    assert output.err.count("\n") == 1
    assert output.err.startswith(f"horolog dump: {log}: at ")


def test_a_file_that_cannot_be_read_does_not_keep_the_others_from_being_shown(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dump", str(log.with_name("x.log")), "/nowhere/" + log.name, str(log)]) == 2
    output = capsys.readouterr()
    assert output.err.count("\n") == 2
    assert "Log starting offset: 5" in output.out


def test_an_empty_offset_index_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write_samples(tmp_path / "t-0")
    empty = next(path for path in files if path.name == f"{1000:020d}.index")
    assert main(["dump", str(empty)]) == 0
    assert capsys.readouterr().out == f"Dumping {empty}\n{empty} is empty.\n"
