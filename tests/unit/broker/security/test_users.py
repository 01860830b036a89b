"""Users: codes and texts of Kafka, and a file that is believed whole or not at all."""

import json
from pathlib import Path
from typing import Any

import pytest

from broker.daemon.loading import check_private
from broker.security.credentials import CredentialKey, Mechanism, is_password, salted
from broker.security.users_file import FILE_NAME, UserTable, parse, render
from config.errors import ConfigError
from protocol.apis import alter_user_scram_credentials as alter_api
from protocol.apis import describe_user_scram_credentials as describe_api
from storage.errors import CorruptCheckpoint, NewerFormat
from storage.posix import real_env
from tests.support.worlds.handler_world import LOG_DIR, World
from tests.support.worlds.known_users import made

SHA_256, SHA_512 = Mechanism
TABLE = UserTable(
    bytes(32),
    {
        CredentialKey("alice", SHA_256): made(SHA_256),
        CredentialKey("alice", SHA_512): made(SHA_512),
        CredentialKey("bob", SHA_256): made(SHA_256, "bob's", iterations=8192),
    },
)


def upsertion(name: str, mechanism: int = 1, **changes: Any) -> alter_api.Upsertion:
    size = 64 if mechanism == 2 else 32
    values = {"iterations": 4096, "salt": b"salt", "salted_password": bytes(size)} | changes
    return alter_api.Upsertion(name=name, mechanism=mechanism, **values)


def deletion(name: str, mechanism: int = 1) -> alter_api.Deletion:
    return alter_api.Deletion(name=name, mechanism=mechanism)


async def alter(world: World, *changes: Any) -> list[tuple[str, int, str | None]]:
    request = alter_api.AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, alter_api.Deletion)],
        upsertions=[each for each in changes if isinstance(each, alter_api.Upsertion)],
    )
    answer = await world.call(request, 0)
    return [(each.user, each.error_code, each.error_message) for each in answer.results]


async def describe(world: World, *names: str) -> dict[str, Any]:
    request = describe_api.DescribeUserScramCredentialsRequest(
        users=[describe_api.UserName(name=each) for each in names] or None
    )
    answer = await world.call(request, 0)
    assert answer.error_code == 0
    return {
        each.user: each.error_message
        or [(info.mechanism, info.iterations) for info in each.credential_infos]
        for each in answer.results
    }


async def test_users_come_change_and_go() -> None:
    world = World()
    users = world.broker.users
    password = salted(SHA_256, b"pencil", b"salt", 5000)
    changes = upsertion("a", iterations=5000, salted_password=password), upsertion("b", 2)
    assert await alter(world, *changes) == [("a", 0, None), ("b", 0, None)]
    assert await describe(world) == {"a": [(1, 5000)], "b": [(2, 4096)]}
    found = users.credential("a", SHA_256)
    assert is_password(SHA_256, found, b"pencil")
    table = parse(FILE_NAME, world.fs.read_text(f"{LOG_DIR}/{FILE_NAME}"))
    assert table.rows == users.rows
    assert await alter(world, deletion("a"), upsertion("b")) == [("a", 0, None), ("b", 0, None)]
    assert await describe(world) == {"b": [(1, 4096), (2, 4096)]}


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        (deletion("nobody"), 91, "Attempt to delete a user credential that does not exist"),
        (deletion(""), 93, "Username must not be empty"),
        (upsertion(""), 93, "Username must not be empty"),
        (upsertion("u", 3), 33, "Unknown SCRAM mechanism"),
        (deletion("u", 0), 33, "Unknown SCRAM mechanism"),
        (upsertion("u", iterations=4095), 93, "Too few iterations"),
        (upsertion("u", iterations=16385), 93, "Too many iterations"),
        (upsertion("u", salted_password=bytes(31)), 93, "A salted password of 32 bytes is needed"),
        (upsertion("u", salt=b""), 93, "Salt must not be empty"),
    ],
)
async def test_a_wrong_change_is_refused_and_the_others_count(
    change: Any, code: int, text: str
) -> None:
    world = World()
    outcomes = await alter(world, change, upsertion("right"))
    assert sorted(outcomes) == sorted([(change.name, code, text), ("right", 0, None)])
    assert [key.user for key in world.broker.users.rows] == ["right"]


async def test_a_user_is_altered_once_a_request() -> None:
    world = World()
    await alter(world, upsertion("u"))
    text = "A user credential cannot be altered twice in the same request"
    for changes in (
        [upsertion("u"), upsertion("u", 2)],
        [deletion("u"), upsertion("u")],
        [deletion("u"), deletion("u", 2)],
    ):
        assert await alter(world, *changes) == [("u", 92, text)]
    assert await describe(world) == {"u": [(1, 4096)]}


async def test_wrong_questions() -> None:
    world = World()
    await alter(world, upsertion("u"))
    twice = "Cannot describe SCRAM credentials for the same user twice in a single request: u"
    nobody = "Attempt to describe a user credential that does not exist: x"
    assert await describe(world, "u", "u", "x") == {"u": twice, "x": nobody}


def test_the_file_says_what_was_written() -> None:
    assert parse("f", render(TABLE).decode()) == TABLE
    assert "pencil" not in render(TABLE).decode()
    assert b"stored_key" not in repr(TABLE).encode()


def document() -> Any:
    found = json.loads(render(TABLE))
    del found["checksum"]
    return found


def edited(**changes: Any) -> str:
    found = document()
    found["users"][0].update(changes)
    return json.dumps(found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "[" * 100_000,
        json.dumps(document() | {"secret": "AAAA"}),
        json.dumps(document() | {"secret": None}),
        json.dumps(document() | {"users": [document()["users"][0]] * 2}),
        json.dumps(document() | {"users": {"alice": 1}}),
        json.dumps(document() | {"checksum": "00000000"}),
        edited(mechanism="SCRAM-SHA-1"),
        edited(name=""),
        edited(name=3),
        edited(iterations=0),
        edited(iterations="4096"),
        edited(stored_key="AAAA"),
        edited(server_key="not base64"),
        edited(salt=None),
    ],
)
def test_a_damaged_file_is_refused(text: str) -> None:
    with pytest.raises(CorruptCheckpoint):
        parse("f", text)


def test_a_newer_file_is_refused() -> None:
    with pytest.raises(NewerFormat):
        parse("f", json.dumps({"format": 2}))


@pytest.mark.parametrize("name", ["horolog-users.json", "horolog-tokens.json"])
def test_a_file_of_secrets_that_all_can_read_refuses_the_start(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{}")
    (tmp_path / name).chmod(0o604)
    with pytest.raises(ConfigError, match=f"chmod 600 {tmp_path}/{name}"):
        check_private(real_env().fs, str(tmp_path))
    (tmp_path / name).chmod(0o600)
    check_private(real_env().fs, str(tmp_path))
