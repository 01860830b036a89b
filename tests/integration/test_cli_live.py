"""The commands that ask a running broker, against one whose clock the test holds."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.cli.main import main
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess
from tests.support.worlds.sensor_story import START, sensor_broker

Run = Callable[..., str]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """One that stands still, with a topic that a date in 2055 keeps from ageing."""
    with sensor_broker(tmp_path_factory.mktemp("cli") / "data") as node:
        yield node


@pytest.fixture
def run(
    broker: NodeProcess, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Runs a command to status 0; what it printed."""
    monkeypatch.setenv("HOROLOG_HTTP", broker.facts["http"])

    def run(*arguments: str) -> str:
        assert main(arguments) == 0, capsys.readouterr().err
        output = capsys.readouterr()
        assert output.err == ""
        assert "\x1b" not in output.out
        return output.out

    return run


def answer(run: Run, *arguments: str) -> Any:
    return json.loads(run(*arguments, "--json"))


def table_of(text: str, first_column: str) -> list[str]:
    """The rows under the head that begins so; none is wider than a table may be."""
    lines = text.splitlines()
    head = next(at for at, line in enumerate(lines) if line.split()[:1] == [first_column])
    assert all(len(line) <= 100 for line in lines[head:])
    return lines[head + 1 :]


def test_segments_tells_what_keeps_them_who_did_it_and_what_frees_them(run: Run) -> None:
    text = run("segments", "sensors")
    assert "retention.ms 7 d, retention.bytes unlimited, by the record clock" in text
    assert (
        "The segment at 0 stays: its time lies in the future (largest record time "
        "2055-02-22T12:00:00Z of the record at offset 107), until 2055-03-01T12:00:00Z." in text
    )
    assert "sent by: client 'sensor-17' at 127.0.0.1, 1 record with" in text
    assert "frees it: set horolog.retention.clock=earlier: it goes at 2026-03-08T12:01:00Z" in text
    rows = table_of(text, "offset")
    assert len(rows) == 3
    assert rows[0].split("  ")[-2:] == ["in the future", "2055-03-01 12:00"]
    assert "behind 0" in rows[1]


def test_segments_in_json_are_the_pages_joined(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answer(run, "segments", "sensors")
    monkeypatch.setattr("broker.cli.segments.PAGE_SEGMENTS", 1)
    assert answer(run, "segments", "sensors") == whole
    (state,) = whole["partitions"]
    assert [each["state"] for each in state["segments"]] == ["closed", "closed", "active"]


def test_segments_are_as_many_as_asked_for(run: Run) -> None:
    text = run("segments", "sensors", "--limit", "2")
    assert text.endswith("... 1 more segment: see --limit and --partition\n")


def test_a_preview_takes_nothing_and_tells_what_would_go(run: Run) -> None:
    assert "takes nothing" in run("retention", "preview", "sensors", "--set", "retention.ms=1h")
    settings = ["--set", "retention.ms=1h", "--set", "retention.bytes=1500000B"]
    text = run("retention", "preview", "sensors", *settings)
    assert text.startswith(
        "With retention.ms=1h, retention.bytes=1500000B, the next round of retention takes 3 segm"
    )
    assert "Without it: nothing." in text
    assert table_of(text, "partition")[0].split()[:2] == ["0", "3"]
    assert text.endswith("1 segment: over retention.bytes\n2 segments: older than retention.ms\n")
    told = answer(run, "retention", "preview", "sensors", *settings)
    assert told["goes"]["segments"] == 3
    assert answer(run, "segments", "sensors")["partitions"][0]["log_start_offset"] == 0


def test_a_time_leads_to_offsets_by_the_clock_that_is_asked(run: Run) -> None:
    text = run("time", "lookup", "sensors", "-2h")
    assert "2055-02-22T12:00:00.000Z" in table_of(text, "partition")[0]
    found = answer(run, "time", "lookup", "sensors", "2026-03-01T09:00:10")["partitions"][0]
    assert found["found"]["offset"] == 10
    text = run("time", "lookup", "sensors", START, "--clock", "arrival")
    assert table_of(text, "partition")[0].split()[1] == "0"
    text = run("time", "lookup", "sensors", "+1d", "--clock", "arrival")
    assert "none: all records are earlier" in text


def test_a_range_is_counted_or_proved_empty(run: Run) -> None:
    text = run("time", "range", "sensors", "2026-03-01T09:00:00", "2026-03-01T09:00:50")
    assert table_of(text, "partition")[0].split() == ["0", "0", "49", "50", "yes"]
    text = run("time", "range", "sensors", "-30d", "-20d", "--clock", "arrival")
    assert "yes: no record is there" in text


def test_the_skew_is_a_histogram(run: Run) -> None:
    text = run("time", "skew", "sensors")
    assert text.startswith("sensors-0: 2600 records".replace("2600", "2 600"))
    assert any(row.startswith("up to 1 d") and "##" in row for row in table_of(text, "late"))
    assert answer(run, "time", "skew", "sensors")["partitions"][0]["records"] == 2600


def test_the_guilty_client_is_named(run: Run) -> None:
    (row,) = table_of(run("time", "dirty", "sensors"), "client")
    assert row.split()[:4] == ["sensor-17", "127.0.0.1", "sensors-0", "@107"]
    assert answer(run, "time", "dirty")["clients"][0]["client_id"] == "sensor-17"


def test_the_clock_is_shown_and_moved(run: Run) -> None:
    before = answer(run, "clock")
    assert before["test_clock"]["state"] == "frozen"
    text = run("clock", "step", "90s")
    assert text.splitlines()[0].startswith("wall clock  2026-03-01T12:")
    assert answer(run, "clock")["wall"]["ms"] == before["wall"]["ms"] + 90_000
    assert "There was no hold." in run("clock", "confirm")
    assert "speed 2" in run("clock", "speed", "2")
    assert "frozen" in run("clock", "freeze")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("segments sensor", "has no topic 'sensor': did you mean sensors?"),
        ("segments sensors --partition 7", "sensors has partitions 0 to 0, not 7"),
        ("time lookup sensors yesterday", "'yesterday' is no time"),
        ("time range sensors -1h -2h", "from is after to"),
        ("retention preview sensors --set retention.mss=1", "did you mean retention.ms?"),
        ("clock step soon", "soon"),
    ],
)
def test_a_mistake_is_one_line(
    broker: NodeProcess,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOROLOG_HTTP", broker.facts["http"])
    assert main(line.split()) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("horolog ")
    assert message in output.err
    assert output.err.count("\n") == 1


def test_a_clock_that_is_not_held_says_so_and_changes_ask_for_a_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = tmp_path / "token"
    secret.write_text("a token of sixteen".replace(" ", "-"))
    secret.chmod(0o600)
    with start_broker(tmp_path / "data", {"horolog.http.token.file": str(secret)}) as node:
        http = ["--http", node.facts["http"]]
        assert main(["clock", "freeze", *http]) == 1
        assert "--token-file FILE or HOROLOG_HTTP_TOKEN" in capsys.readouterr().err
        assert main(["clock", "freeze", *http, "--token-file", str(secret)]) == 1
        assert "serve --test-clock" in capsys.readouterr().err
        assert main(["clock", "--http", node.bootstrap]) == 2
        assert "is no Horolog (status 400, no JSON)" in capsys.readouterr().err
