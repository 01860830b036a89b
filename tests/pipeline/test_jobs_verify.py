"""`verify` on all cores: sound directories, damage, and what is not there."""

import json
from pathlib import Path

import pytest

from broker.cli.main import main
from storage.posix import real_env
from tests.support.records.logs import append, open_log

NOW = 1_700_000_000_000


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Three partitions of two segments or more."""
    for partition in range(3):
        log = open_log(real_env(), path=str(tmp_path / f"t-{partition}"), segment_bytes=400)
        for n in range(10):
            append(log, NOW + n, NOW + n)
        log.close()
    return tmp_path


def verdicts(asked: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, str]]:
    status = main(["spark", "verify", "--json", *asked])
    rows = json.loads(capsys.readouterr().out)["partitions"]
    return status, {row["partition"]: row["verdict"] for row in rows}


def test_sound_logs_are_proved_sound(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found = verdicts(["--log-dirs", str(directory)], capsys)
    assert status == 0
    assert found == {"t-0": "sound", "t-1": "sound", "t-2": "sound"}


def test_a_turned_bit_is_found_where_it_is(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = min((directory / "t-1").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[100] ^= 1
    segment.write_bytes(data)
    status, found = verdicts(["--log-dirs", str(directory)], capsys)
    assert status == 3
    assert found == {"t-0": "sound", "t-1": "damaged", "t-2": "sound"}
    assert main(["spark", "verify", "--log-dirs", str(directory)]) == 3
    assert "damage: " in capsys.readouterr().out


def test_a_topic_that_is_not_there(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "verify", "--log-dirs", str(directory), "--topic", "u"]) == 2
    assert "no partition of u" in capsys.readouterr().err
    assert main(["spark", "verify", "--log-dirs", f"{directory}/none"]) == 1
