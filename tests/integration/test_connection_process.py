"""The command line from outside: ready line, signals, exit status, one-line refusals."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from protocol.apis.metadata import MetadataRequest
from tests.support.clients.wire import WireClient
from tests.support.worlds.broker_process import HOROLOG, start_broker


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(HOROLOG), *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def serve(data_dir: Path, *more: str) -> subprocess.CompletedProcess[str]:
    ports = ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    return run("serve", "--data-dir", str(data_dir), *ports, *more)


def test_the_ready_line_names_both_ports_and_sigterm_ends_it_cleanly(tmp_path: Path) -> None:
    with start_broker(tmp_path / "data") as broker:
        assert re.fullmatch(r"127\.0\.0\.1:\d+", broker.facts["http"])
        host, port = broker.bootstrap.split(":")
        with WireClient(host, int(port)) as client:
            assert client.call(MetadataRequest(), 9).brokers
        assert broker.stop() == 0


def test_ctrl_c_ends_it_cleanly_too(tmp_path: Path) -> None:
    with start_broker(tmp_path / "data") as broker:
        broker._child.send_signal(signal.SIGINT)
        assert broker._child.wait(20) == 0


def test_a_restart_finds_the_same_cluster(tmp_path: Path) -> None:
    seen = []
    for _ in range(2):
        with start_broker(tmp_path / "data") as broker:
            host, port = broker.bootstrap.split(":")
            with WireClient(host, int(port)) as client:
                seen.append(client.call(MetadataRequest(), 9).cluster_id)
    assert seen[0]
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "retention.msx=1"], "retention"),
        (["--set", "listeners=nonsense"], "nonsense"),
        (["--config", "/does/not/exist.yaml"], "/does/not/exist.yaml"),
    ],
)
def test_bad_settings_end_with_1_and_one_line(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    result = serve(tmp_path / "data", *arguments)
    assert result.returncode == 1
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_locked_directory_ends_with_2(tmp_path: Path) -> None:
    with start_broker(tmp_path / "data"):
        result = serve(tmp_path / "data")
        assert result.returncode == 2
        assert "lock" in result.stderr
        assert "Traceback" not in result.stderr


def test_a_taken_port_ends_with_2(tmp_path: Path) -> None:
    with start_broker(tmp_path / "data") as broker:
        result = serve(tmp_path / "other", "--listen", broker.bootstrap)
        assert result.returncode == 2
        assert "cannot listen" in result.stderr


def test_a_directory_that_is_a_file_ends_with_2(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a directory")
    result = serve(tmp_path / "data")
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) < 5
