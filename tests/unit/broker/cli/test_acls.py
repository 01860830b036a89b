"""`horolog acls` on a directory that no broker uses: the entries, and which of them decides."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from broker.cli.main import CommandFailed, horolog
from broker.security.acl_file import FILE_NAME, parse
from storage.posix import real_env


def run(folder: Path, *arguments: str) -> Result:
    given = ["acls", *arguments, "--offline", "--data-dir", str(folder)]
    return CliRunner().invoke(horolog, given, standalone_mode=False)


def entries(folder: Path) -> list[str]:
    return [str(each) for each in parse("f", (folder / FILE_NAME).read_text()).acls]


def test_entries_are_added_shown_and_removed(tmp_path: Path) -> None:
    added = run(tmp_path, "add", "alice", "read,describe", "topic:orders")
    assert 'Added: allow User:alice to read topic "orders" from *' in added.output
    run(
        tmp_path,
        "add",
        "User:*",
        "ALL",
        "group:g",
        "--prefixed",
        "--deny",
        "--host",
        "::ffff:1.2.3.4",
    )
    run(tmp_path, "add", "alice", "create-tokens", "user:bob")
    run(tmp_path, "add", "alice", "alter", "cluster")
    assert entries(tmp_path) == [
        'allow User:alice to read topic "orders" from *',
        'allow User:alice to describe topic "orders" from *',
        'deny User:* to all group names beginning with "g" from 1.2.3.4',
        'allow User:alice to create_tokens user "User:bob" from *',
        'allow User:alice to alter cluster "kafka-cluster" from *',
    ]
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600
    listed = run(tmp_path, "list", "--resource", "group:g1").output.splitlines()
    assert listed[1].split() == ["group:g", "prefixed", "User:*", "1.2.3.4", "deny", "all"]
    assert len(run(tmp_path, "list", "--principal", "alice").output.splitlines()) == 5
    assert run(tmp_path, "remove", "alice", "read", "topic:orders").return_value == 0
    gone = run(tmp_path, "remove", "alice", "read", "topic:orders")
    assert gone.return_value == 1
    assert "Not there" in gone.output
    assert len(entries(tmp_path)) == 4


@pytest.mark.parametrize(
    ("asked", "verdict"),
    [
        (("alice", "10.0.0.1", "read", "topic:orders"),
         'allowed: by: allow User:alice to read topic "orders" from *'),
        (("alice", "10.0.0.1", "describe", "topic:orders"),
         'allowed: by: allow User:alice to read topic "orders" from *'),
        (("alice", "10.0.0.1", "write", "topic:orders"), "denied: no entry allows it"),
        (("alice", "::ffff:10.0.0.9", "read", "topic:orders"),
         'denied: by: deny User:* to all topic names beginning with "or" from 10.0.0.9'),
        (("boss", "10.0.0.9", "read", "topic:orders"),
         "allowed: User:boss is one of super.users"),
        (("carol", "10.0.0.1", "read", "topic:free"),
         "allowed: no entry is about it, and allow.everyone.if.no.acl.found is true"),
    ],
)  # fmt: skip
def test_the_entry_that_decides(tmp_path: Path, asked: tuple[str, ...], verdict: str) -> None:
    run(tmp_path, "add", "alice", "read", "topic:orders")
    run(tmp_path, "add", "*", "all", "topic:or", "--prefixed", "--deny", "--host", "10.0.0.9")
    settings = tmp_path / "server.properties"
    settings.write_text("super.users=User:boss\nallow.everyone.if.no.acl.found=true\n")
    told = run(tmp_path, "check", *asked, "--config", str(settings))
    assert told.output.strip() == verdict
    assert told.return_value == (0 if verdict.startswith("allowed") else 1)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("add", "alice", "read", "orders"), "is no resource"),
        (("add", "alice", "read", "topic:"), "is no resource"),
        (("add", "alice", "read", "cluster:other"), "'read' is no operation on a cluster"),
        (("add", "alice", "fly", "topic:t"), "'fly' is no operation on a topic: all, read"),
        (("add", "alice", "alter", "cluster:other"), "kafka-cluster"),
        (("add", "x" * 2000, "read", "topic:t"), "more than 1024 characters"),
    ],
)
def test_mistakes(tmp_path: Path, arguments: tuple[str, ...], text: str) -> None:
    assert text in str(run(tmp_path, *arguments).exception)
    assert not (tmp_path / FILE_NAME).exists()


def test_a_directory_that_is_missing_or_in_use_is_left_alone(tmp_path: Path) -> None:
    missing = run(tmp_path / "none", "list")
    assert "there is no data directory" in str(missing.exception)
    assert not (tmp_path / "none").exists()
    lock = real_env().fs.lock(str(tmp_path / ".lock"))
    try:
        result = run(tmp_path, "add", "alice", "read", "topic:t")
    finally:
        lock.release()
    assert isinstance(result.exception, CommandFailed)
    assert not (tmp_path / FILE_NAME).exists()
