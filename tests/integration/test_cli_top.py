"""`horolog top` against a running broker: as text, as JSON, and live on a terminal of its own."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.cli.main import main
from tests.support.page.timeline_world import SETTINGS, TOPICS, timeline_broker
from tests.support.worlds.live_topic import LiveBroker

PATIENCE = 30
HOROLOG = Path(sys.executable).parent / "horolog"
LEFT_SCREEN = "\x1b[?1049l"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with timeline_broker(tmp_path_factory.mktemp("top") / "data") as live:
        yield live


@pytest.fixture(autouse=True)
def address(live: LiveBroker, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HOROLOG_HTTP", live.http.address)
    return live.http.address


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["top", *arguments]) == 0
    return capsys.readouterr().out


def test_once_it_is_text_with_what_hurts_first(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--once")
    lines = text.splitlines()
    assert "5 partitions" in lines[0]
    assert re.match(r"3 leave at the next round of retention \(in 3 min [\ds ]*\), 7 seg", lines[1])
    order = [line.split()[0] for line in lines if re.match(r"\w+-\d ", line)]
    assert order[:2] == ["orders-0", "pinned-0"], "those that are blocked"
    assert sorted(order) == sorted(f"{topic}-0" for topic in TOPICS)
    assert "worst 2055-02-26T12:00:00Z" in text
    assert "\x1b" not in text


def test_a_limit_says_what_it_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert "... 3 more partitions: see --limit and --topic" in printed(capsys, "--limit", "2")
    assert "... " not in printed(capsys, "--limit", "2", "--topic", "orders")


def test_json_is_the_whole_answer(capsys: pytest.CaptureFixture[str]) -> None:
    answer = json.loads(printed(capsys, "--json"))
    assert {each["topic"] for each in answer["partitions"]} == set(TOPICS)
    assert answer["next"] is None
    assert answer["bad_clocks"]["clients_in_all"] == 2
    whole = json.loads(printed(capsys, "--json", "--internal"))
    assert len(whole["partitions"]) == whole["partitions_in_all"] == len(TOPICS) + 50


def test_mistakes_are_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--topic", "no"]) == 1
    assert "There is no topic 'no'" in capsys.readouterr().err
    assert main(["top", "--http", "127.0.0.1:1"]) == 2
    assert "no broker answers at 127.0.0.1:1" in capsys.readouterr().err


def interruptible() -> None:
    """As on a terminal, also where the tests themselves run in the background and ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """A command on a terminal of so many columns; what it writes is read as it comes."""

    def __init__(self, columns: int, address: str, *arguments: str) -> None:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 16, columns, 0, 0))
        known = {key: value for key, value in os.environ.items() if not key.startswith("COL")}
        self.process = subprocess.Popen(
            [HOROLOG, "top", *arguments], stdin=theirs, stdout=theirs, stderr=theirs,
            env={**known, "HOROLOG_HTTP": address, "TERM": "xterm-256color"},
            start_new_session=True,
            preexec_fn=interruptible,  # noqa: PLW1509 - it sets one signal, and takes no lock
        )  # fmt: skip
        os.close(theirs)
        self.written = ""
        self._ours = ours

    def until(self, text: str) -> str:
        """Reads on until it was written; what came since the last call."""
        deadline, seen = time.monotonic() + PATIENCE, ""
        while text not in seen:
            ready, _, _ = select.select([self._ours], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"no {text!r} in {seen!r}"
            try:
                seen += os.read(self._ours, 65536).decode(errors="replace")
            except OSError as error:
                raise AssertionError(f"it ended without {text!r}: {seen!r}") from error
        self.written += seen
        return seen

    def close(self) -> None:
        """Ends what is left."""
        self.process.kill()
        self.process.wait(PATIENCE)
        os.close(self._ours)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_live_it_leaves_the_terminal_as_it_was(address: str, number: int) -> None:
    terminal = Terminal(100, address)
    try:
        terminal.until("orders-0")
        terminal.process.send_signal(number)
        terminal.until(LEFT_SCREEN)
        assert terminal.process.wait(PATIENCE) == 0
    finally:
        terminal.close()


def test_live_it_outlasts_the_broker(tmp_path: Path) -> None:
    from tests.support.worlds.broker_process import start_broker

    with start_broker(tmp_path / "data", SETTINGS, options=["--test-clock"]) as process:
        broker = LiveBroker(process, tmp_path / "data")
        broker.topic("orders").produce(broker.now_ms)
        terminal = Terminal(60, process.facts["http"], "--every", "0.2")
        try:
            terminal.until("orders-0")
            process.stop()
            terminal.until("No answer for ")
            terminal.until("orders-0")
            terminal.process.send_signal(signal.SIGINT)
            terminal.until(LEFT_SCREEN)
            assert terminal.process.wait(PATIENCE) == 0
            assert "Traceback" not in terminal.written
        finally:
            terminal.close()
