"""A change that is none by what a node knows is answered when the node knows what there is."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from broker.fleet import authority as fleet_authority
from broker.fleet.catalog.port import CatalogAway
from broker.runtime.documents import NotDecided
from broker.security.authority import DOCUMENT as ACLS
from storage.errors import CorruptCheckpoint, DiskError
from tests.support.fleet.node_services import FleetNodeWorld, two_nodes
from tests.support.fleet.shared_changes import (
    ACL,
    add_acl,
    add_quota,
    add_user,
    remove_acl,
    remove_quota,
    remove_user,
)

Change = Callable[[FleetNodeWorld], Awaitable[object]]


PAIRS = [(add_acl, remove_acl), (add_user, remove_user), (add_quota, remove_quota)]
EACH = pytest.mark.parametrize(("add", "remove"), PAIRS)


@pytest.fixture
async def nodes() -> Sequence[FleetNodeWorld]:
    return two_nodes()


@contextmanager
def catalog_away(node: FleetNodeWorld) -> Iterator[None]:
    """It answers no question how new the rows are."""
    rows, good = node.rows, node.rows.version

    async def away() -> int:
        raise CatalogAway("away")

    rows.version = away  # type: ignore[method-assign]
    yield
    rows.version = good  # type: ignore[method-assign]


@EACH
async def test_what_another_node_took_away_is_not_said_to_be_there_already(
    nodes: Sequence[FleetNodeWorld], add: Change, remove: Change
) -> None:
    one, two = nodes
    await add(one)
    await two.catches_up()
    await remove(one)
    with catalog_away(two), pytest.raises(NotDecided, match="nobody said whether another node"):
        await add(two)
    await add(two)
    await one.catches_up()
    for each in nodes:
        await add(each)


@EACH
async def test_what_another_node_added_is_not_said_to_be_gone_already(
    nodes: Sequence[FleetNodeWorld], add: Change, remove: Change
) -> None:
    one, two = nodes
    await add(one)
    with catalog_away(two), pytest.raises(NotDecided):
        await remove(two)
    await remove(two)
    await one.catches_up()
    await remove(one)


async def test_a_catalog_that_is_silent_says_nothing_either(
    nodes: Sequence[FleetNodeWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_authority, "ANSWER_SECONDS", 0.01)
    one, two = nodes
    await add_acl(one)
    await two.catches_up()
    put = two.rows.topics

    async def silent() -> object:
        raise TimeoutError

    await one.create("t")
    two.rows.topics = silent  # type: ignore[method-assign,assignment]
    with pytest.raises(NotDecided):
        await add_acl(two)
    two.rows.topics = put  # type: ignore[method-assign]
    await add_acl(two)


async def test_a_document_that_this_node_cannot_read_is_not_known(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    one, two = nodes
    await add_acl(one)
    await two.catches_up()

    async def refuses(_: bytes) -> None:
        raise CorruptCheckpoint(ACLS, "is newer")

    two.image.followers[ACLS] = refuses
    await remove_acl(one)
    with pytest.raises(NotDecided, match="cannot read what they are now"):
        await add_acl(two)


async def test_documents_are_known_where_a_topic_cannot_be_made(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    one, two = nodes
    await add_acl(one)
    await one.create("t")

    def fails(*_: object, **__: object) -> None:
        raise DiskError("t-0", "mkdir", "no space", 28)

    two.broker.logs.create_log = fails  # type: ignore[method-assign,assignment]
    await add_acl(two)
    assert ACL in two.broker.authority.book
