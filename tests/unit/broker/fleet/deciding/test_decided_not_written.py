"""Documents that were decided, and that a node's disk refuses: they count there all the same."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

import pytest

from broker.security.delegation.token import TokenKey
from broker.security.delegation.tokens import Wish
from broker.topics.new_topic import NewTopic
from storage.errors import DiskError
from tests.support.fleet.node_services import FleetNodeWorld, two_nodes
from tests.support.fleet.shared_changes import (
    add_acl,
    add_quota,
    add_user,
    remove_acl,
    remove_quota,
    remove_user,
)
from tests.support.worlds.handler_world import World

Change = Callable[[World], Awaitable[None]]


@contextmanager
def full_disk(node: World) -> Iterator[None]:
    """No file can be written."""
    good = node.fs.write_atomically

    def fails(path: str, _: bytes) -> None:
        raise DiskError(path, "write", "no space", 28)

    node.fs.write_atomically = fails  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        node.fs.write_atomically = good  # type: ignore[method-assign]


async def add_token(node: World) -> None:
    await node.broker.tokens.create(Wish("alice", "alice", (), -1))


async def remove_token(node: World) -> None:
    [token] = node.broker.tokens.all()
    await node.broker.tokens.expire(node.broker.tokens.hmac_of(token), -1, "alice")


async def set_retention(node: World) -> None:
    await alter(node, {"retention.ms": "5000"})


async def unset_retention(node: World) -> None:
    await alter(node, {})


async def alter(node: World, overrides: dict[str, str | None]) -> None:
    topics = node.broker.topics
    async with topics.changing:
        await topics.alter_settings(node.broker.config.prepare_topic("t", overrides))


def known(node: World) -> tuple[int, ...]:
    """How much there is of each kind."""
    broker = node.broker
    return (
        len(broker.authority.book.acls),
        len(broker.users.rows),
        len(broker.quotas.table.entries),
        len(broker.tokens.all()),
        len(broker.config.topics_with_overrides()),
    )


PAIRS = [
    (add_acl, remove_acl), (add_user, remove_user), (add_quota, remove_quota),
    (add_token, remove_token), (set_retention, unset_retention),
]  # fmt: skip
EACH = pytest.mark.parametrize(("add", "remove"), PAIRS)
NOTHING = (0,) * len(PAIRS)
SECRET = {"delegation_token_secret_key": "secret" * 6}


@pytest.fixture
async def nodes() -> Sequence[FleetNodeWorld]:
    one, two = two_nodes(**SECRET)
    await one.create("t")
    await two.catches_up()
    return one, two


@EACH
async def test_what_was_taken_away_counts_no_longer_where_it_could_not_be_written(
    nodes: Sequence[FleetNodeWorld], add: Change, remove: Change
) -> None:
    one, two = nodes
    await add(one)
    await two.catches_up()
    with full_disk(one):
        await remove(one)
    assert known(one) == NOTHING
    await two.catches_up()
    assert known(two) == NOTHING


@EACH
async def test_nor_does_it_come_back_with_the_next_change(
    nodes: Sequence[FleetNodeWorld], add: Change, remove: Change
) -> None:
    one, two = nodes
    await add(one)
    with full_disk(one):
        await remove(one)
    for change, _ in PAIRS:
        if change is not add:
            await change(one)
    await two.catches_up()
    assert known(one) == known(two) == tuple(int(change is not add) for change, _ in PAIRS)


@EACH
async def test_who_follows_a_change_does_so_though_it_cannot_write(
    nodes: Sequence[FleetNodeWorld], add: Change, remove: Change
) -> None:
    one, two = nodes
    await add(one)
    await two.catches_up()
    await remove(one)
    with full_disk(two):
        await two.catches_up()
        assert known(two) == NOTHING
    assert two.image.version == one.rows.topics_version


@EACH
async def test_a_broker_alone_has_nothing_count_that_it_cannot_write(
    add: Change, remove: Change
) -> None:
    world = World(**SECRET)
    async with world.broker.topics.changing:
        await world.broker.topics.create([NewTopic("t", UUID(int=1), 1, {})])
    with full_disk(world), pytest.raises(DiskError):
        await add(world)
    assert known(world) == NOTHING
    await add(world)
    before = known(world)
    with full_disk(world), pytest.raises(DiskError):
        await remove(world)
    assert known(world) == before != NOTHING


async def test_sessions_of_a_token_end_with_it_though_it_cannot_be_written(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    one, _ = nodes
    await add_token(one)
    [token] = one.broker.tokens.all()
    ended: list[TokenKey] = []
    one.broker.tokens.on_removed = ended.append
    with full_disk(one):
        await remove_token(one)
    assert ended == [TokenKey(token.token_id)]


async def test_a_topic_keeps_the_settings_it_was_decided_with_where_it_could_not_be_made(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    one, two = nodes
    with full_disk(one), pytest.raises(DiskError):
        await one.create("u", 1, **{"retention.ms": "7000"})
    await set_retention(one)
    await one.catches_up()
    await two.catches_up()
    for node in nodes:
        assert node.broker.config.topic_config("u").retention_ms == 7000
        assert node.shapes() == {"t": 1, "u": 1}
