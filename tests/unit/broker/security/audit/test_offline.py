"""What commands change while no broker runs is kept for the security audit of the next one."""

import json
from pathlib import Path

from broker.cli.security.account import leave_trace
from broker.cli.security.acl_source import _changes
from broker.security.acl import Acl
from broker.security.acl_book import AclBook
from broker.security.audit.offline import FILE_NAME, forget, left
from protocol.acls import AclOperation, AclPermission, PatternType, ResourceType
from storage.posix import real_env

READ = Acl(
    ResourceType.TOPIC, PatternType.LITERAL, "t", "User:a", "*", AclOperation.READ,
    AclPermission.ALLOW,
)  # fmt: skip


def test_lines_are_kept_until_they_are_taken(tmp_path: Path) -> None:
    env, directory = real_env(), str(tmp_path)
    for user in ("alice", "bob"):
        leave_trace(env, directory, "horolog users add", "alter user", resource=user, detail="x")
    lines = [json.loads(each) for each in left(env.fs, directory)]
    assert [each["resource"] for each in lines] == ["alice", "bob"]
    assert {each["listener"] for each in lines} == {"CLI"}
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o077 == 0
    forget(env.fs, directory)
    assert left(env.fs, directory) == []


def test_entries_that_came_and_went() -> None:
    other = READ._replace(name="u")
    changes = _changes(AclBook([READ]), AclBook([other]))
    assert [(each.operation, each.resource) for each in changes] == [
        ("create ACL", "u"), ("delete ACL", "t")
    ]  # fmt: skip
    assert changes[0].detail == 'allow User:a to read topic "u" from *'
