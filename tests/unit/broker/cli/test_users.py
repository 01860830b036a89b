"""`horolog users add`: a user for a directory that no broker uses, and no password on disk."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from broker.cli.main import CommandFailed, horolog
from broker.security.credentials import CredentialKey, Mechanism, is_password
from broker.security.users_file import FILE_NAME, UserTable, parse
from storage.posix import real_env

SHA_256, SHA_512 = Mechanism


def add(folder: Path, *arguments: str, password: str = "pencil\n") -> Result:
    given = ["users", "add", *arguments, "--data-dir", str(folder)]
    return CliRunner().invoke(horolog, given, input=password, standalone_mode=False)


def table(folder: Path) -> UserTable:
    return parse("f", (folder / FILE_NAME).read_text())


def test_a_user_gets_both_mechanisms_in_a_file_of_its_owner(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    result = add(folder, "alice", "--offline")
    assert result.return_value == 0
    assert "User alice may log in by SCRAM-SHA-256, SCRAM-SHA-512." in result.output
    rows = table(folder).rows
    assert set(rows) == {CredentialKey("alice", SHA_256), CredentialKey("alice", SHA_512)}
    assert all(is_password(key.mechanism, each, b"pencil") for key, each in rows.items())
    assert len({each.salt for each in rows.values()}) == 2
    assert "pencil" not in (folder / FILE_NAME).read_text()
    assert (folder / FILE_NAME).stat().st_mode & 0o777 == 0o600


def test_other_users_stay_and_the_same_gets_another_password(tmp_path: Path) -> None:
    add(tmp_path, "alice", "--offline")
    before = table(tmp_path)
    one = "--mechanism", "SCRAM-SHA-256", "--iterations", "5000"
    add(tmp_path, "bob", "--offline", *one, password="bob's\n")
    add(tmp_path, "alice", "--offline", *one, password="new\r\n")
    after = table(tmp_path)
    assert after.secret == before.secret
    key = CredentialKey("alice", SHA_512)
    assert after.rows[key] == before.rows[key]
    changed = after.rows[CredentialKey("alice", SHA_256)]
    assert changed.iterations == 5000
    assert is_password(SHA_256, changed, b"new")
    assert CredentialKey("bob", SHA_256) in after.rows


def test_the_directory_may_come_from_the_settings_file(tmp_path: Path) -> None:
    settings = tmp_path / "server.properties"
    settings.write_text(f"log.dirs={tmp_path / 'data'}\n")
    given = ["users", "add", "alice", "--offline", "--config", str(settings)]
    CliRunner().invoke(horolog, given, input="pencil\n", standalone_mode=False)
    assert table(tmp_path / "data").rows


@pytest.mark.parametrize(
    ("arguments", "password", "text"),
    [
        (["alice"], "pencil\n", "go with --offline"),
        (["", "--offline"], "pencil\n", "needs a name"),
        (["alice", "--offline"], "", "an empty password"),
        (["alice", "--offline"], "\npencil\n", "an empty password"),
        (["alice", "--offline", "--iterations", "100"], "pencil\n", "4096"),
    ],
)
def test_mistakes(tmp_path: Path, arguments: list[str], password: str, text: str) -> None:
    result = add(tmp_path, *arguments, password=password)
    assert text in str(result.exception)
    assert not (tmp_path / FILE_NAME).exists()


def test_a_directory_in_use_is_left_alone(tmp_path: Path) -> None:
    lock = real_env().fs.lock(str(tmp_path / ".lock"))
    try:
        result = add(tmp_path, "alice", "--offline")
    finally:
        lock.release()
    assert isinstance(result.exception, CommandFailed)
    assert "stop the broker first" in str(result.exception)
    assert not (tmp_path / FILE_NAME).exists()


def test_a_damaged_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("{}")
    result = add(tmp_path, "alice", "--offline")
    assert isinstance(result.exception, CommandFailed)
    assert (tmp_path / FILE_NAME).read_text() == "{}"


def run(folder: Path, *arguments: str) -> Result:
    given = ["users", *arguments, "--offline", "--data-dir", str(folder)]
    return CliRunner().invoke(horolog, given, standalone_mode=False)


def test_users_of_a_directory_are_shown_and_removed(tmp_path: Path) -> None:
    add(tmp_path, "bob", "--offline", "--mechanism", "SCRAM-SHA-512")
    add(tmp_path, "alice", "--offline")
    lines = [line.split() for line in run(tmp_path, "list").output.splitlines()]
    assert lines[1:] == [
        ["alice", "SCRAM-SHA-256", "4096"],
        ["alice", "SCRAM-SHA-512", "4096"],
        ["bob", "SCRAM-SHA-512", "4096"],
    ]
    run(tmp_path, "remove", "alice", "--mechanism", "SCRAM-SHA-256")
    assert "no longer logs in by SCRAM-SHA-512." in run(tmp_path, "remove", "alice").output
    assert set(table(tmp_path).rows) == {CredentialKey("bob", SHA_512)}
    assert "there is no user alice" in str(run(tmp_path, "remove", "alice").exception)
