"""A topic that one node cannot make at once, as its disk refuses, is none that was deleted."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from storage.directory.topics_file import FILE_NAME, CatalogState, parse
from storage.errors import DiskError
from tests.support.fleet.node_services import FleetNodeWorld, two_nodes
from tests.support.worlds.handler_world import LOG_DIR


@contextmanager
def full_disk(node: FleetNodeWorld) -> Iterator[None]:
    """No log can be made."""
    logs, good = node.broker.logs, node.broker.logs.create_log

    def fails(*_: object, **__: object) -> None:
        raise DiskError("t-0", "mkdir", "no space", 28)

    logs.create_log = fails  # type: ignore[method-assign,assignment]
    yield
    logs.create_log = good  # type: ignore[method-assign]


def stored(node: FleetNodeWorld) -> CatalogState:
    return parse(node.fs.read_bytes(f"{LOG_DIR}/{FILE_NAME}"))


async def test_one_that_could_not_be_followed_at_first_is_not_deleted() -> None:
    one, two = two_nodes()
    topic_id = await one.create("t")
    with full_disk(two):
        for _ in range(2):
            with pytest.raises(DiskError):
                await two.catches_up()
            assert not two.broker.topics.deleted
            assert not stored(two).deleted
    await two.catches_up()
    assert two.shapes() == {"t": 1}
    assert not two.broker.topics.deleted
    assert stored(two).topics["t"].topic_id == topic_id


async def test_nor_one_that_could_not_be_made_where_it_was_decided() -> None:
    one, two = two_nodes()
    with full_disk(one), pytest.raises(DiskError):
        await one.create("t")
    assert not one.broker.topics.deleted
    await one.catches_up()
    await two.catches_up()
    assert one.shapes() == two.shapes() == {"t": 1}
    assert not one.broker.topics.deleted


async def test_one_that_went_in_the_same_round_has_gone() -> None:
    """For groups, share groups and counts of it."""
    one, two = two_nodes()
    await one.create("t")
    await two.catches_up()
    async with one.broker.topics.changing:
        await one.broker.topics.delete(["t"])
    await one.create("u")
    with full_disk(two), pytest.raises(DiskError):
        await two.catches_up()
    assert two.deleted == ["t"]
    await two.catches_up()
    assert two.deleted == ["t"], "once"
    assert two.shapes() == {"u": 1}


@pytest.mark.parametrize("is_here", [False, True])
async def test_one_that_was_taken_for_deleted_is_not_once_the_rows_have_it(is_here: bool) -> None:
    one, two = two_nodes()
    topic_id = await one.create("t")
    if is_here:
        await two.catches_up()
    two.broker.topics.deleted = frozenset((topic_id, UUID(int=7)))
    await one.create("u")
    await two.catches_up()
    assert two.broker.topics.deleted == stored(two).deleted == {UUID(int=7)}
