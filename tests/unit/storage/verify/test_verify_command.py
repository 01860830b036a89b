"""`horolog verify`: table, JSON, exit status, and that a read-only disk is enough."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from broker.cli.main import main
from storage.posix import real_env
from tests.support.disk.mounts import tmpfs
from tests.support.records.logs import append, open_log
from tests.support.worlds.broker_process import HOROLOG


@pytest.fixture
def data(tmp_path: Path) -> Path:
    top = tmp_path / "data"
    for name in ("orders-0", "a-topic-of-a-longish-name-12"):
        log = open_log(real_env(), path=str(top / name), index_interval_bytes=100)
        for i in range(60):
            append(log, 1000 + i, 1000 + i)
        log.close()
    (top / ".kafka_cleanshutdown").write_text("{}")
    return top


def spoil(data: Path) -> None:
    index = data / "orders-0" / f"{0:020d}.timeindex"
    entries = bytearray(index.read_bytes())
    entries[7] ^= 1
    index.write_bytes(entries)


def test_a_sound_directory_is_a_table_and_status_0(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(data)]) == 0
    output = capsys.readouterr()
    head, long, orders = output.out.splitlines()
    assert head.split()[:4] == ["partition", "segments", "records", "size"]
    assert orders.split()[:3] == ["orders-0", "1", "120"]
    assert orders.rstrip().endswith("sound")
    assert long.startswith("a-topic-of-a-longish-name-12 ")
    assert all(len(line) <= 100 for line in output.out.splitlines())
    assert "\x1b" not in output.out
    assert output.err == ""


def test_what_is_wrong_is_one_line_with_the_file_and_status_3(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(data)
    assert main(["verify", str(data)]) == 3
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("wrong: ")]
    assert line.startswith(f"wrong: orders-0/{0:020d}.timeindex: entry 0 (timestamp ")


def test_json_is_an_object_a_line(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(data)
    assert main(["verify", "--json", str(data)]) == 3
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["partition"], row["verdict"]) for row in rows] == [
        ("a-topic-of-a-longish-name-12", "sound"),
        ("orders-0", "wrong"),
    ]
    assert rows[1]["proved"]["records"] == 120
    assert rows[1]["findings"][0]["severity"] == "wrong"


def test_a_directory_that_was_not_closed_is_told(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    assert main(["verify", str(data)]) == 0
    assert "a broker is at work in it, or was killed" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["", "missing"])
def test_what_cannot_be_read_is_one_line_and_status_2(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(tmp_path / name)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"horolog verify: {tmp_path}")
    assert output.err.count("\n") == 1


def test_a_disk_that_is_read_only_will_do(data: Path, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk") as disk:
        shutil.copytree(data, disk.path / "data")
        disk.remount("ro")
        done = subprocess.run(
            [HOROLOG, "verify", disk.path / "data"], capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("sound") == 2
