"""CreateAcls, DescribeAcls and DeleteAcls: what they take, with Kafka's codes; it lasts."""

from typing import Any

import pytest

from broker.runtime.principals import ANONYMOUS
from broker.runtime.rights import MARKS
from broker.security.acl_file import FILE_NAME, parse, render
from broker.security.acl_requests import MAX_A_REQUEST
from broker.security.authority import MAX_REMOVED, AclRights
from protocol.acls import AclOperation as Op
from protocol.acls import ResourceType
from protocol.apis.create_acls import AclCreation, CreateAclsRequest
from protocol.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from protocol.apis.describe_acls import DescribeAclsRequest
from protocol.errors import ErrorCode
from storage.errors import CorruptCheckpoint, NewerFormat
from tests.support.worlds.handler_world import LOG_DIR, World

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ALLOW = 3
READ = MARKS[ResourceType.TOPIC][Op.READ]
READ_T = {
    "resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, "principal": "User:a",
    "host": "*", "operation": 3, "permission_type": ALLOW,
}  # fmt: skip
ANYTHING: dict[str, Any] = {
    "resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1,
}  # fmt: skip


@pytest.fixture
async def world() -> World:
    return World(authorizer_class_name=STANDARD, super_users="User:ANONYMOUS")


async def create(world: World, *changes: dict[str, Any]) -> list[int]:
    creations = [AclCreation(**{**READ_T, **each}) for each in changes]
    answer = await world.call(CreateAclsRequest(creations=creations), 3)
    return [each.error_code for each in answer.results]


async def described(world: World, **asked: Any) -> list[tuple[int, int, str, str, int]]:
    answer = await world.call(DescribeAclsRequest(**{**ANYTHING, **asked}), 3)
    assert answer.error_code == 0
    return [
        (each.resource_type, each.pattern_type, each.resource_name, acl.principal, acl.operation)
        for each in answer.resources
        for acl in each.acls
    ]


async def delete(world: World, *filters: dict[str, Any]) -> list[list[str]]:
    asked = [DeleteAclsFilter(**{**ANYTHING, **each}) for each in filters]
    answer = await world.call(DeleteAclsRequest(filters=asked), 3)
    return [[acl.resource_name for acl in each.matching_acls] for each in answer.filter_results]


async def test_what_was_added_is_described_and_lasts(world: World) -> None:
    assert await create(world, {}, {"resource_pattern_type": 4, "operation": 4}, {}) == [0, 0, 0]
    expected = [(2, 3, "t", "User:a", 3), (2, 4, "t", "User:a", 4)]
    assert await described(world) == expected
    again = world.restarted()
    assert [each.operation for each in again.broker.authority.book.acls] == [3, 4]


@pytest.mark.parametrize(
    ("asked", "operations"),
    [
        ({}, [3, 4, 5]),
        ({"resource_name_filter": "t"}, [3]),
        ({"resource_name_filter": "t1", "pattern_type_filter": 2}, [4, 5]),
        ({"resource_name_filter": "t", "pattern_type_filter": 3}, [3]),
        ({"pattern_type_filter": 4}, [4]),
        ({"operation": 2}, []),
        ({"operation": 5}, [5]),
        ({"principal_filter": "User:b"}, [5]),
        ({"host_filter": "*"}, [3, 4, 5]),
        ({"host_filter": "10.0.0.1"}, []),
        ({"permission_type": 2}, []),
        ({"resource_type_filter": 3}, []),
    ],
)
async def test_filters(world: World, asked: dict[str, Any], operations: list[int]) -> None:
    await create(
        world,
        {},
        {"resource_name": "t1", "resource_pattern_type": 4, "operation": 4},
        {"resource_name": "*", "operation": 5, "principal": "User:b"},
    )
    assert sorted(each[-1] for each in await described(world, **asked)) == operations
    assert sum(map(len, await delete(world, asked))) == len(operations)
    assert len(await described(world)) == 3 - len(operations)


@pytest.mark.parametrize(
    "wrong",
    [
        {"resource_type": 1}, {"resource_type": 0}, {"resource_type": 9},
        {"resource_pattern_type": 1}, {"resource_pattern_type": 2}, {"resource_pattern_type": 7},
        {"operation": 1}, {"operation": 0}, {"operation": 99}, {"permission_type": 1},
        {"permission_type": 0}, {"resource_name": ""}, {"principal": "a"}, {"principal": "User:"},
        {"host": ""}, {"resource_type": 4}, {"resource_name": "x" * 2000},
    ],
)  # fmt: skip
async def test_an_entry_that_could_mean_nothing(world: World, wrong: dict[str, Any]) -> None:
    codes = await create(world, wrong, {"resource_name": "good"})
    assert codes == [ErrorCode.INVALID_REQUEST, 0]
    assert [each[2] for each in await described(world)] == ["good"]


async def test_too_many_in_one_request(world: World) -> None:
    codes = await create(world, *[{}] * (MAX_A_REQUEST + 1))
    assert set(codes) == {ErrorCode.INVALID_REQUEST}
    assert await described(world) == []


async def test_more_than_kafka_takes_away_at_once(world: World) -> None:
    for first in range(0, MAX_REMOVED + 1, MAX_A_REQUEST):
        names = [{"resource_name": f"t{first + n}"} for n in range(MAX_A_REQUEST)]
        assert set(await create(world, *names)) == {0}
    answer = await world.call(DeleteAclsRequest(filters=[DeleteAclsFilter(**ANYTHING)]), 3)
    assert answer.filter_results[0].error_code == ErrorCode.INVALID_REQUEST
    assert len(world.broker.authority.book.acls) > MAX_REMOVED


async def test_a_filter_that_names_one_entry_takes_that_one(world: World) -> None:
    await create(world, {}, {"operation": 4})
    one = {
        "resource_type_filter": 2, "resource_name_filter": "t", "pattern_type_filter": 3,
        "principal_filter": "User:a", "host_filter": "*", "operation": 3, "permission_type": ALLOW,
    }  # fmt: skip
    assert await delete(world, one, one) == [["t"], ["t"]]
    assert [each[-1] for each in await described(world)] == [4]


async def test_a_change_counts_at_once_for_who_is_connected(world: World) -> None:
    authority = world.broker.authority
    rights = authority.rights_of(ANONYMOUS._replace(name="a"), "10.0.0.9")
    assert isinstance(rights, AclRights)
    assert not rights.may(READ, "t")
    await create(world, {})
    assert rights.may(READ, "t")
    await delete(world, {})
    assert not rights.may(READ, "t")


async def test_nothing_is_asked_and_nothing_is_kept_without_an_authorizer() -> None:
    world = World()
    assert world.broker.authority.rights_of(ANONYMOUS, "10.0.0.9") is None
    assert await create(world, {}) == [ErrorCode.SECURITY_DISABLED]
    answer = await world.call(DescribeAclsRequest(**ANYTHING), 3)
    assert answer.error_code == ErrorCode.SECURITY_DISABLED
    assert not world.fs.exists(f"{LOG_DIR}/{FILE_NAME}")


async def test_a_disk_that_refuses_changes_nothing(world: World) -> None:
    await create(world, {})
    world.fs.write_atomically = _refuses  # type: ignore[method-assign]
    assert await create(world, {"operation": 4}) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert [each[-1] for each in await described(world)] == [3]


def _refuses(path: str, data: bytes) -> None:
    from storage.errors import DiskError

    raise DiskError(path, 28, "no space left on device")


@pytest.mark.parametrize("spoil", ["{", "[]", '{"format": 1, "acls": [{}]}', '{"format": 1}'])
def test_a_file_that_cannot_be_trusted_ends_the_start(spoil: str) -> None:
    with pytest.raises(CorruptCheckpoint, match="ACLs cannot be read"):
        parse("f", spoil)


async def test_a_file_with_a_changed_bit_ends_the_start(world: World) -> None:
    await create(world, {})
    text = render(world.broker.authority.book).decode()
    with pytest.raises(CorruptCheckpoint, match="checksum"):
        parse("f", text.replace('"READ"', '"WRITE"'))
    assert parse("f", text) == world.broker.authority.book


def test_a_file_of_a_newer_version_ends_the_start() -> None:
    with pytest.raises(NewerFormat):
        parse("f", '{"format": 2, "acls": []}')
