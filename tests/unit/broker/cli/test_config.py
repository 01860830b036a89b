"""`horolog config`: what it prints, and how it exits."""

from pathlib import Path

import pytest

from broker.cli.main import main


def run(*arguments: str) -> int:
    return main(["config", *arguments])


@pytest.fixture(autouse=True)
def no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith(("KAFKA_", "HOROLOG_")):
            monkeypatch.delenv(name)


def test_explain_says_the_value_of_every_setting_and_where_it_is_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "server.yaml"
    path.write_text("# mine\nlog.retention.hours: 2\n")
    monkeypatch.setenv("HOROLOG_DURABILITY", "os")
    assert run("explain", "--config", str(path), "--set", "node.id=3") == 0
    out = capsys.readouterr().out
    assert "node.id = 3    [--set node.id]" in out
    assert "horolog.durability = os    [environment variable HOROLOG_DURABILITY]" in out
    assert f"log.retention.ms = 7200000    [{path}:2]" in out
    assert "num.partitions = 1    [default]" in out


@pytest.mark.parametrize("name", ["retention.ms", "log.retention.ms", "log.retention.hours"])
def test_explain_takes_any_name_of_a_setting(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", name, "--set", "log.retention.minutes=1") == 0
    out = capsys.readouterr().out
    assert "60000" in out
    assert "KAFKA_LOG_RETENTION_MS" in out


def test_explain_knows_settings_of_topics_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", "remote.storage.enable") == 0
    shown = capsys.readouterr().out
    assert "value      false" in shown
    assert "KIP-405" in shown
    assert "variable" not in shown


def test_explain_shows_what_was_overruled(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_NODE_ID", "8")
    assert run("explain", "node.id", "--set", "node.id=3") == 0
    assert "node.id=8" in capsys.readouterr().out


def test_explain_of_an_unknown_key_fails_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("explain", "node.di") == 1
    assert "did you mean node.id?" in capsys.readouterr().err


def test_check_names_every_mistake_with_its_line_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "server.properties"
    path.write_text("node.id=1\nlog.roll.ms=0\nnode.idd=1\n")
    assert run("check", str(path)) == 1
    err = capsys.readouterr().err
    assert f"{path}:2: " in err
    assert f"{path}:3: " in err


def test_check_passes_a_right_file_and_reports_what_is_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "server.properties"
    path.write_text("node.id=1\nnum.io.threads=8\n")
    assert run("check", str(path)) == 0
    out = capsys.readouterr().out
    assert f"{path}:2: num.io.threads is ignored: " in out
    assert "2 settings" in out


def test_docs_prints_both_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("docs") == 0
    out = capsys.readouterr().out
    assert "| `retention.ms` |" in out
    assert "| `node.id` |" in out


def test_the_generated_files_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("docs", "--check") == 0, capsys.readouterr().out
