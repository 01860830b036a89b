"""A topic that is deleted and made again has none of its old settings, on whatever node."""

from collections.abc import Sequence

import pytest

from broker.fleet.catalog.rows import Topics
from broker.fleet.image import SETTINGS
from broker.runtime.documents import NotDecided, OutOfDate
from config.errors import ConfigError
from tests.support.fleet.node_services import FleetNodeWorld, two_nodes

OLD, NEW = {"retention.ms": "5000"}, {"retention.ms": "7000"}


@pytest.fixture
async def nodes() -> Sequence[FleetNodeWorld]:
    """Both have a topic with settings."""
    one, two = two_nodes()
    await one.create("t", 1, **OLD)
    await two.catches_up()
    return one, two


async def delete(node: FleetNodeWorld) -> None:
    async with node.broker.topics.changing:
        await node.broker.topics.delete(["t"])


async def started(node: FleetNodeWorld) -> FleetNodeWorld:
    """Another node of that fleet, which joins."""
    other = FleetNodeWorld(None, 3)
    other.join(node.rows, 3)
    await other.catches_up()
    return other


def settings_of(node: FleetNodeWorld) -> tuple[dict[str, str], int]:
    """Those of the topic itself, and what its log keeps to."""
    log = node.broker.topics.image.topics["t"].partitions[0].log
    return node.broker.config.topic_overrides("t"), log.config.retention_ms


async def test_a_topic_made_again_has_none_on_a_node_that_starts_either(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    one, two = nodes
    default = one.broker.config.topic_defaults.retention_ms
    await delete(one)
    await two.catches_up()
    await one.create("t")
    await two.catches_up()
    third = await started(one)
    for each in (one, two, third):
        assert settings_of(each) == ({}, default)
    await third.create("u", 1, **NEW)
    await one.catches_up()
    assert settings_of(one) == ({}, default)


async def test_what_a_deletion_could_not_take_out_does_not_come_back_with_the_name(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    one, two = nodes
    put = one.rows.put_document

    async def refused(_: object) -> bool:
        return False

    one.rows.put_document = refused  # type: ignore[method-assign]
    await delete(one)
    one.rows.put_document = put  # type: ignore[method-assign]
    await one.create("t")
    await two.catches_up()
    for each in (one, two, await started(one)):
        assert settings_of(each)[0] == {}


async def test_the_settings_of_a_deleted_topic_go_with_it(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    one, two = nodes
    await delete(one)
    await two.catches_up()
    for each in (one, two, await started(one)):
        assert not each.broker.config.topics_with_overrides()


@pytest.mark.parametrize("seen", ["before the deletion", "after the deletion", "made again"])
async def test_a_topic_made_again_with_others_has_those_whatever_of_the_rows_was_read_first(
    nodes: Sequence[FleetNodeWorld], seen: str
) -> None:
    """Documents are read after the topics, and may be newer."""
    one, two = nodes
    rows, read = one.rows, one.rows.topics
    stale = await read()
    await delete(one)
    if seen == "after the deletion":
        stale = await read()
    await one.create("t", 1, **NEW)

    async def first() -> Topics:
        rows.topics = read  # type: ignore[method-assign]
        return await read() if seen == "made again" else stale

    rows.topics = first  # type: ignore[method-assign]
    await two.catches_up()
    await two.catches_up()
    assert settings_of(two) == (NEW, 7000)
    await two.create("u", 1, **OLD)
    await one.catches_up()
    assert settings_of(one) == (NEW, 7000)


async def test_a_change_of_a_topic_that_is_gone_does_not_count_for_the_next_of_its_name(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    """By a node that has not heard of the deletion."""
    one, two = two_nodes()
    await one.create("t")
    await two.catches_up()
    await delete(one)
    topics = two.broker.topics
    async with topics.changing:
        await topics.alter_settings(two.broker.config.prepare_topic("t", OLD))
    with pytest.raises(OutOfDate, match="settings were changed on another node"):
        await one.create("t")
    await one.catches_up()
    await one.create("t")
    await two.catches_up()
    for each in (one, two, await started(one)):
        assert settings_of(each)[0] == {}


async def test_topics_that_are_made_without_settings_change_no_document(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    one, two = nodes
    before = await one.rows.documents({})
    await one.create("u")
    await two.create("v")
    assert await one.rows.documents({}) == before


async def test_a_node_that_cannot_read_settings_gives_no_topic_those_of_before(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    """And makes none: it cannot say what settings those would have."""
    one, two = nodes

    async def refuses(_: bytes) -> None:
        raise ConfigError("version", "is newer")

    two.image.followers[SETTINGS] = refuses
    await delete(one)
    await one.create("t", 1, **NEW)
    await two.catches_up()
    assert settings_of(two)[0] == {}
    with pytest.raises(NotDecided, match="cannot read what they are now"):
        await two.create("u")
