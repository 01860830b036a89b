"""`horolog dump` prints what Kafka's own tool prints, line by line."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.kafka.kafka_oracle import DUMP_TOOL, SCRIPT, available
from tests.support.records.partition_samples import write_samples

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
UTF8 = {**os.environ, "LC_ALL": "C.UTF-8"}


def lines(command: Sequence[str]) -> list[str]:
    done = subprocess.run(
        command, env=UTF8, stdin=subprocess.DEVNULL, capture_output=True, timeout=110, check=False
    )
    return done.stdout.decode().splitlines()


def theirs(files: Sequence[Path], *options: str) -> list[str]:
    joined = ",".join(map(str, files))
    return lines([sys.executable, str(SCRIPT), "tool", DUMP_TOOL, *options, "--files", joined])


def ours(files: Sequence[Path], *options: str) -> list[str]:
    return lines([sys.executable, "-m", "broker", "dump", *options, *map(str, files)])


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One file of each kind that both know."""
    files = write_samples(tmp_path_factory.mktemp("dump") / "t-0")
    return [path for path in files if path.suffix]


@pytest.mark.parametrize("options", [(), ("--deep-iteration",), ("--print-data-log",)], ids="".join)
def test_every_file_reads_alike(samples: list[Path], options: tuple[str, ...]) -> None:
    logs = [path for path in samples if path.suffix == ".log"]
    files = samples if not options else logs
    expected = theirs(files, *options)
    assert len(expected) > 40
    assert ours(files, *options) == expected


def test_a_log_that_was_cut_off_reads_alike(samples: list[Path], tmp_path: Path) -> None:
    source = next(path for path in samples if path.name == f"{0:020d}.log")
    cut = tmp_path / source.name
    shutil.copy(source, cut)
    with cut.open("r+b") as file:
        file.truncate(cut.stat().st_size - 70)
    expected = theirs([cut], "--print-data-log")
    assert "invalid bytes at the end" in expected[-1]
    assert ours([cut], "--print-data-log") == expected
