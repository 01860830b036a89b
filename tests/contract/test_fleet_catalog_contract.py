"""What every catalog of a fleet keeps, PostgreSQL and the model of simulations alike."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from uuid import UUID, uuid4

import pytest

from broker.fleet.catalog.line import LineLimits
from broker.fleet.catalog.port import FleetCatalog
from broker.fleet.catalog.postgres import PostgresCatalog
from broker.fleet.catalog.rows import (
    CatalogCommit,
    Checkpoint,
    CommitAnswer,
    CommitId,
    Document,
    FleetFacts,
    Incarnation,
    ListenerAddress,
    ManifestName,
    Naming,
    NewTopics,
    NodeAddress,
    OwnedShard,
    PartitionKey,
    Registration,
    ShardRow,
    Span,
    StatePiece,
    TopicAnswer,
    TopicRow,
    Trim,
)
from tests.support.fleet.model_catalog import ModelCatalog
from tests.support.fleet.postgres_server import PostgresServer, is_postgres_published, postgres

SHARDS = 4
TOPIC = UUID(int=7)
A, B = PartitionKey(TOPIC, 0), PartitionKey(TOPIC, 1)
KEEP_MS = -1000


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    if not is_postgres_published():
        pytest.skip("the package registry has no PostgreSQL for this machine")
    with postgres() as running:
        yield running


@pytest.fixture(params=["postgres", "model"])
async def catalog(request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
    if request.param == "model":
        yield ModelCatalog(FleetFacts(uuid4(), "cluster", SHARDS), lambda: 1_700_000_000_000)
        return
    server = request.getfixturevalue("server")
    url = await asyncio.to_thread(server.new_fleet, SHARDS)
    real = PostgresCatalog(url, LineLimits(5, 5))
    yield real
    await real.close()


async def born(
    catalog: FleetCatalog, node_id: int = 1, directory: int | None = None
) -> Incarnation | None:
    directory_id = UUID(int=node_id if directory is None else directory)
    address = NodeAddress("localhost", 9092 + node_id)
    listeners = [ListenerAddress("HOST", *address), ListenerAddress("NET", "::1", 9)]
    return await catalog.register(Registration(node_id, directory_id, address, "1", listeners))


async def lives(catalog: FleetCatalog, node_id: int = 1) -> Incarnation:
    me = await born(catalog, node_id)
    assert me is not None
    return me


class Owner(NamedTuple):
    """An incarnation that owns all shards, with one topic of two partitions."""

    catalog: FleetCatalog
    me: Incarnation
    shards: Sequence[OwnedShard]

    def commit(
        self, number: int, *spans: Span, body: bytes = b"x" * 100, crc: int = 9
    ) -> CatalogCommit:
        return CatalogCommit(CommitId(self.me, number), crc, self.shards, spans, body)

    def checkpoint(
        self, number: int, *spans: Span, states: Sequence[StatePiece] = ()
    ) -> Checkpoint:
        key = f"wal/{self.me.number}/{number}"
        return Checkpoint(
            CommitId(self.me, number), 5, self.shards, spans, states, key, KEEP_MS
        )  # fmt: skip

    def naming(self, key: PartitionKey, number: int, end: int) -> Naming:
        return Naming(self.me, self.shards[key.number], key, number, end, KEEP_MS)

    def trim(self, key: PartitionKey, start: int) -> Trim:
        """A is of the first shard, B of the second."""
        return Trim(self.me, self.shards[key.number], key, start, KEEP_MS)


async def owner_of_all(catalog: FleetCatalog, node_id: int = 1) -> Owner:
    me = await lives(catalog, node_id)
    shards = await catalog.take(me, SHARDS)
    await catalog.create_topics(NewTopics([TopicRow(TOPIC, "t", [0, 1])]))
    return Owner(catalog, me, shards)


def span(key: PartitionKey, base: int, last: int, epoch: int = 1, position: int = 0) -> Span:
    return Span(key, base, last, epoch, position, 50, 1000 + last)


async def spans_of(catalog: FleetCatalog, key: PartitionKey) -> list[tuple[int, int, int]]:
    """First and last offset, and number of the commit that has them."""
    rows = await catalog.partitions(range(SHARDS))
    [row] = [each for each in rows if each.partition == key]
    return [
        (each.span.base_offset, each.span.last_offset, each.commit_id.number)
        for each in row.spans
    ]  # fmt: skip


async def test_a_node_lives_once_for_each_registration(catalog: FleetCatalog) -> None:
    assert await born(catalog) == Incarnation(1, 1)
    assert await born(catalog, directory=99) is None
    assert await born(catalog) == Incarnation(1, 2)
    assert await catalog.renew(Incarnation(1, 1)) is None
    assert await catalog.renew(Incarnation(1, 2)) is not None
    assert await catalog.fence(Incarnation(1, 2), 1)
    assert await born(catalog, directory=99) == Incarnation(1, 3)


async def test_nodes_are_listed_with_the_number_of_their_renewals(catalog: FleetCatalog) -> None:
    me, _ = await lives(catalog, 2), await lives(catalog, 1)
    for _ in range(3):
        await catalog.renew(me)
    assert await catalog.drain(2, draining=True)
    assert not await catalog.drain(3, draining=True)
    first, second = await catalog.nodes()
    assert (first.incarnation, first.address) == (Incarnation(1, 1), NodeAddress("localhost", 9093))
    assert [tuple(each) for each in first.listeners] == [
        ("HOST", "localhost", 9093), ("NET", "::1", 9),
    ]  # fmt: skip
    assert [each.renewals for each in (first, second)] == [0, 3]
    assert second.renewed_ms >= first.renewed_ms > 1_600_000_000_000
    assert [each.is_draining for each in (first, second)] == [False, True]
    await lives(catalog, 2)
    second = (await catalog.nodes())[1]
    assert (second.renewals, second.is_draining) == (0, True), "draining goes on over a restart"


async def test_who_has_renewed_meanwhile_is_not_fenced(catalog: FleetCatalog) -> None:
    me = await lives(catalog, 1)
    await catalog.renew(me)
    assert not await catalog.fence(me, 0)
    assert not await catalog.fence(Incarnation(1, 7), 1)
    assert await catalog.fence(me, 1)
    assert not await catalog.fence(me, 1)
    assert await catalog.renew(me) is None
    [row] = await catalog.nodes()
    assert row.is_fenced


async def test_shards_without_a_living_owner_are_taken_in_a_new_epoch(
    catalog: FleetCatalog,
) -> None:
    first, second = await lives(catalog, 1), await lives(catalog, 2)
    assert await catalog.take(first, 3) == [OwnedShard(each, 1) for each in (0, 1, 2)]
    assert await catalog.take(second, 3) == [OwnedShard(3, 1)]
    assert await catalog.take(second, 3) == []
    await catalog.resign(first)
    assert await catalog.take(first, 3) == []
    assert await catalog.take(second, 2) == [OwnedShard(0, 2), OwnedShard(1, 2)]
    assert await catalog.owned(second) == [OwnedShard(0, 2), OwnedShard(1, 2), OwnedShard(3, 1)]
    assert (await catalog.shards())[2] == ShardRow(2, first, 1)


async def test_a_shard_is_free_when_its_owner_has_a_new_life(catalog: FleetCatalog) -> None:
    first = await lives(catalog)
    await catalog.take(first, 1)
    second = await lives(catalog)
    assert await catalog.take(second, 1) == [OwnedShard(0, 2)]


async def test_only_the_owner_gives_a_shard_and_only_to_the_living(catalog: FleetCatalog) -> None:
    first, second = await lives(catalog, 1), await lives(catalog, 2)
    [shard] = await catalog.take(first, 1)
    assert not await catalog.give(second, shard, second)
    assert not await catalog.give(first, OwnedShard(0, 9), second)
    assert not await catalog.give(first, shard, Incarnation(2, 9))
    assert await catalog.give(first, shard, second)
    assert not await catalog.give(first, shard, second), "a late copy"
    assert (await catalog.shards())[0] == ShardRow(0, second, 2)


async def test_an_incarnation_that_leaves_gets_no_shards(catalog: FleetCatalog) -> None:
    first, leaver = await lives(catalog, 1), await lives(catalog, 2)
    [shard] = await catalog.take(first, 1)
    await catalog.leave(leaver._replace(number=9))
    assert [each.is_draining for each in await catalog.nodes()] == [False, False]
    await catalog.leave(leaver)
    await catalog.leave(leaver)
    assert [each.is_draining for each in await catalog.nodes()] == [False, True]
    assert not await catalog.give(first, shard, leaver)
    again = await lives(catalog, 2)
    await catalog.leave(leaver)
    assert [each.is_draining for each in await catalog.nodes()] == [False, False]
    assert await catalog.give(first, shard, again)


async def test_a_node_says_in_each_life_whether_partitions_join_by_themselves(
    catalog: FleetCatalog,
) -> None:
    order = Registration(1, UUID(int=1), NodeAddress("localhost", 9092), "1")
    for joins in (True, True, False, True):
        await catalog.register(order._replace(joins=joins))
        assert [each.joins for each in await catalog.nodes()] == [joins]


async def test_a_node_says_how_far_its_clock_is_ahead(catalog: FleetCatalog) -> None:
    me = await lives(catalog)
    assert (await catalog.nodes())[0].ahead_ms is None
    await catalog.renew(me, -90_000)
    assert (await catalog.nodes())[0].ahead_ms == -90_000
    await catalog.renew(me)
    assert (await catalog.nodes())[0].ahead_ms is None


async def test_loads_are_those_of_the_owner_and_stay_with_the_shard(catalog: FleetCatalog) -> None:
    first, second = await lives(catalog, 1), await lives(catalog, 2)
    shard, _ = await catalog.take(first, 2)
    await catalog.report_loads(first, {0: 700, 1: 5, 3: 9})
    await catalog.report_loads(second, {0: 1})
    assert [each.load for each in await catalog.shards()] == [700, 5, 0, 0]
    assert await catalog.give(first, shard, second)
    await catalog.report_loads(first, {0: 2, 1: 0})
    assert [each.load for each in await catalog.shards()] == [700, 0, 0, 0]
    await catalog.report_loads(second, {0: 800})
    assert (await catalog.shards())[0] == ShardRow(0, second, 2, 800)


async def test_a_commit_counts_once(catalog: FleetCatalog) -> None:
    owner = await owner_of_all(catalog)
    order = owner.commit(1, span(A, 0, 4), span(B, 0, 1, position=50))
    assert await catalog.commit(order) is CommitAnswer.OK
    assert await catalog.commit(order) is CommitAnswer.ALREADY
    assert await catalog.commit(order._replace(crc=8)) is CommitAnswer.CONFLICT
    assert await spans_of(catalog, A) == [(0, 4, 1)]
    assert await catalog.body(order.commit_id) == b"x" * 100


@pytest.mark.parametrize("number", [0, 2, 3])
async def test_commits_of_an_incarnation_are_a_chain(catalog: FleetCatalog, number: int) -> None:
    owner = await owner_of_all(catalog)
    expected = CommitAnswer.GAP if number else CommitAnswer.CONFLICT
    assert await catalog.commit(owner.commit(number, span(A, 0, 4))) is expected
    assert await spans_of(catalog, A) == []


@pytest.mark.parametrize("base", [0, 4, 6])
async def test_a_commit_begins_where_the_partition_ends(catalog: FleetCatalog, base: int) -> None:
    owner = await owner_of_all(catalog)
    await catalog.commit(owner.commit(1, span(A, 0, 4)))
    order = owner.commit(2, span(B, 0, 1), span(A, base, 9))
    assert await catalog.commit(order) is CommitAnswer.OFFSETS
    assert await spans_of(catalog, B) == [], "all of it, or nothing"
    assert await catalog.commit(owner.commit(2, span(A, 5, 9))) is CommitAnswer.OK


async def test_nothing_of_a_fenced_incarnation_counts(catalog: FleetCatalog) -> None:
    owner = await owner_of_all(catalog)
    assert await catalog.commit(owner.commit(1, span(A, 0, 4))) is CommitAnswer.OK
    assert await catalog.fence(owner.me, 0)
    assert await catalog.commit(owner.commit(2, span(A, 5, 9))) is CommitAnswer.FENCED
    assert await catalog.commit(owner.commit(1, span(A, 0, 4))) is CommitAnswer.FENCED
    assert await spans_of(catalog, A) == [(0, 4, 1)]


async def test_nothing_counts_of_a_shard_in_an_earlier_epoch(catalog: FleetCatalog) -> None:
    owner = await owner_of_all(catalog)
    second = await lives(catalog, 2)
    await catalog.give(owner.me, owner.shards[0], second)
    assert await catalog.commit(owner.commit(1, span(B, 0, 4))) is CommitAnswer.STALE
    rest = owner._replace(shards=owner.shards[1:])
    assert await catalog.commit(rest.commit(1, span(A, 0, 4))) is CommitAnswer.NO_PARTITION
    assert await catalog.commit(rest.commit(1, span(B, 0, 4))) is CommitAnswer.OK


def new(name: str, *shards: int, topic_id: UUID = TOPIC) -> NewTopics:
    return NewTopics([TopicRow(topic_id, name, shards)])


async def test_a_topic_is_made_once(catalog: FleetCatalog) -> None:
    assert await catalog.topics() == (0, [])
    assert await catalog.create_topics(new("t", 3, 0)) is TopicAnswer.OK
    assert await catalog.create_topics(new("t", 3, 0)) is TopicAnswer.ALREADY
    assert await catalog.create_topics(new("t", 1, topic_id=UUID(int=8))) is TopicAnswer.TAKEN
    assert await catalog.create_topics(new("u", 1)) is TopicAnswer.TAKEN, "the id is in use"
    topics = await catalog.topics()
    assert topics.version == 1
    assert [tuple(each) for each in topics.topics] == [(TOPIC, "t", (3, 0))]
    assert [each.partition for each in await catalog.partitions([0])] == [B]
    assert await catalog.keys([0, 1, 3]) == {A: 3, B: 0}


async def test_topics_come_with_their_settings_or_not_at_all(catalog: FleetCatalog) -> None:
    first, second = Document("settings", 1, b"one"), Document("settings", 2, b"two")
    rows = [TopicRow(UUID(int=each), f"t{each}", (each % SHARDS, 1)) for each in (3, 4, 5)]
    assert await catalog.create_topics(NewTopics(rows, second)) is TopicAnswer.CHANGED
    assert (await catalog.topics()).topics == []
    assert await catalog.create_topics(NewTopics(rows, first)) is TopicAnswer.OK
    assert await catalog.create_topics(NewTopics(rows, first)) is TopicAnswer.ALREADY
    more = [TopicRow(UUID(int=9), "new", (0,)), rows[0]._replace(topic_id=UUID(int=8))]
    assert await catalog.create_topics(NewTopics(more, second)) is TopicAnswer.TAKEN
    assert await catalog.documents({}) == [first]
    topics = (await catalog.topics()).topics
    assert [(each.name, each.shards) for each in topics] == [
        ("t3", (3, 1)), ("t4", (0, 1)), ("t5", (1, 1)),
    ]  # fmt: skip


async def test_topics_whose_settings_stay_as_they_are_need_them_to_be_those_still(
    catalog: FleetCatalog,
) -> None:
    first, second = Document("settings", 1, b"one"), Document("settings", 2, b"two")
    assert await catalog.put_document(first)
    assert await catalog.create_topics(new("t", 1)._replace(settings=first)) is TopicAnswer.OK
    assert await catalog.documents({}) == [first]
    assert await catalog.put_document(second)
    late = new("u", 1, topic_id=UUID(int=8))._replace(settings=first)
    assert await catalog.create_topics(late) is TopicAnswer.CHANGED
    assert [each.name for each in (await catalog.topics()).topics] == ["t"]
    assert await catalog.documents({}) == [second]


async def test_a_deleted_topic_takes_its_commits_along(catalog: FleetCatalog) -> None:
    owner = await owner_of_all(catalog)
    await catalog.commit(owner.commit(1, span(A, 0, 4)))
    await catalog.commit(owner.commit(2, span(A, 5, 9)))
    me = await catalog.renew(owner.me)
    assert await catalog.delete_topic(TOPIC, KEEP_MS)
    assert not await catalog.delete_topic(TOPIC, KEEP_MS)
    renewed = await catalog.renew(owner.me)
    assert me is not None
    assert renewed is not None
    assert renewed.metadata_version == me.metadata_version + 1
    assert await catalog.commit(owner.commit(3, span(A, 10, 19))) is CommitAnswer.NO_PARTITION
    assert await catalog.commit(owner.commit(2, span(A, 5, 9))) is CommitAnswer.ALREADY
    assert await catalog.body(CommitId(owner.me, 1)) is None
    assert await catalog.body(CommitId(owner.me, 2)) is None


async def test_a_checkpoint_takes_the_place_of_commits(catalog: FleetCatalog) -> None:
    owner = await owner_of_all(catalog)
    await catalog.commit(owner.commit(1, span(A, 0, 4), span(B, 0, 0)))
    await catalog.commit(owner.commit(2, span(A, 5, 9)))
    await catalog.commit(owner.commit(3, span(A, 10, 14)))
    state = StatePiece(A, 10, 50, 20)
    order = owner.checkpoint(4, span(A, 0, 9), states=[state])
    assert await catalog.checkpoint(order) is CommitAnswer.OK
    assert await catalog.checkpoint(order) is CommitAnswer.ALREADY
    assert await spans_of(catalog, A) == [(0, 9, 4), (10, 14, 3)]
    assert await spans_of(catalog, B) == [(0, 0, 1)]
    [row, _] = await catalog.partitions([0, 1])
    assert row.state is not None
    assert (row.state.piece, row.state.object_key) == (state, order.object_key)
    assert await catalog.body(CommitId(owner.me, 1)) is not None, "it has another partition"
    assert await catalog.body(CommitId(owner.me, 2)) is None
    assert await catalog.commit(owner.commit(5, span(A, 15, 19))) is CommitAnswer.OK


@pytest.mark.parametrize(
    ("base", "last", "epoch"), [(0, 3, 1), (1, 9, 1), (0, 14, 1), (0, 9, 2), (20, 29, 1)]
)
async def test_a_checkpoint_has_the_ends_of_what_it_replaces(
    catalog: FleetCatalog, base: int, last: int, epoch: int
) -> None:
    owner = await owner_of_all(catalog)
    await catalog.commit(owner.commit(1, span(A, 0, 4)))
    await catalog.commit(owner.commit(2, span(A, 5, 9)))
    order = owner.checkpoint(3, span(A, base, last, epoch))
    assert await catalog.checkpoint(order) is CommitAnswer.OFFSETS
    assert await spans_of(catalog, A) == [(0, 4, 1), (5, 9, 2)]


async def test_spans_of_two_epochs_stay_two(catalog: FleetCatalog) -> None:
    owner = await owner_of_all(catalog)
    await catalog.commit(owner.commit(1, span(A, 0, 4)))
    await catalog.resign(owner.me)
    second = await owner_of_all(catalog)
    await catalog.commit(second.commit(1, span(A, 5, 9, epoch=2)))
    refused = second.checkpoint(2, span(A, 0, 9, epoch=2))
    assert await catalog.checkpoint(refused) is CommitAnswer.OFFSETS
    fine = second.checkpoint(2, span(A, 0, 4), span(A, 5, 9, epoch=2, position=50))
    assert await catalog.checkpoint(fine) is CommitAnswer.OK
    assert await spans_of(catalog, A) == [(0, 4, 2), (5, 9, 2)]


async def test_a_late_copy_of_what_was_replaced_does_nothing(catalog: FleetCatalog) -> None:
    """Its row is gone, that of the commit before is there, and what it replaces is as it was."""
    owner = await owner_of_all(catalog)
    await catalog.commit(owner.commit(1, span(A, 0, 4)))
    await catalog.commit(owner.commit(2, span(B, 0, 0)))
    early = owner.checkpoint(3, span(A, 0, 4))
    assert await catalog.checkpoint(early) is CommitAnswer.OK
    assert await catalog.checkpoint(owner.checkpoint(4, span(A, 0, 4))) is CommitAnswer.OK
    assert await catalog.trash(1) == [early.object_key]
    assert await catalog.checkpoint(early) is CommitAnswer.GAP
    assert await spans_of(catalog, A) == [(0, 4, 4)]


async def test_objects_that_nothing_names_are_trash(catalog: FleetCatalog) -> None:
    owner = await owner_of_all(catalog)
    await catalog.commit(owner.commit(1, span(A, 0, 4)))
    first = owner.checkpoint(2, span(A, 0, 4), states=[StatePiece(A, 5, 50, 9)])
    await catalog.checkpoint(first)
    await catalog.checkpoint(owner.checkpoint(3, span(A, 0, 4)))
    assert await catalog.trash(10) == [], "its state is named"
    second = owner.checkpoint(4, states=[StatePiece(A, 5, 0, 9)])
    await catalog.checkpoint(second)
    assert await catalog.trash(10) == [first.object_key]
    keys = [first.object_key, second.object_key, "wal/nobody's"]
    assert await catalog.unnamed(keys) == ["wal/nobody's"]
    await catalog.removed([first.object_key])
    assert await catalog.trash(10) == []


async def test_a_sweep_takes_rows_that_were_kept_for_being_the_newest(
    catalog: FleetCatalog,
) -> None:
    owner = await owner_of_all(catalog)
    assert await catalog.sweep(10, 0) == 0, "the registration is the newest"
    await catalog.commit(owner.commit(1, span(A, 0, 4)))
    assert await catalog.sweep(10, 0) == 1
    await catalog.trim(owner.trim(A, 5))
    assert await catalog.sweep(10, 0) == 0, "nothing names it, and it is the newest"
    await catalog.commit(owner.commit(2, span(B, 0, 4)))
    assert await catalog.sweep(10, 0) == 1
    assert await catalog.sweep(10, 0) == 0
    assert await spans_of(catalog, B) == [(0, 4, 2)]
    assert await catalog.commit(owner.commit(3, span(A, 5, 6))) is CommitAnswer.OK


async def test_a_topic_grows_once(catalog: FleetCatalog) -> None:
    await catalog.create_topics(NewTopics([TopicRow(TOPIC, "t", [3])]))
    assert await catalog.grow_topic(TOPIC, 1, [0, 2])
    assert await catalog.grow_topic(TOPIC, 1, [0, 2]), "it is as it was asked for"
    assert not await catalog.grow_topic(TOPIC, 1, [0]), "it has more"
    assert not await catalog.grow_topic(UUID(int=8), 1, [0])
    version, [row] = await catalog.topics()
    assert (version, tuple(row.shards)) == (2, (3, 0, 2))
    assert [each.partition.number for each in await catalog.partitions([0])] == [1]


async def test_a_log_start_only_rises_and_takes_whole_spans_along(catalog: FleetCatalog) -> None:
    owner = await owner_of_all(catalog)
    await catalog.commit(owner.commit(1, span(A, 0, 4)))
    await catalog.commit(owner.commit(2, span(A, 5, 9)))
    assert await catalog.trim(owner.trim(A, 7)) is CommitAnswer.OK
    assert await catalog.trim(owner.trim(A, 7)) is CommitAnswer.ALREADY
    assert await catalog.trim(owner.trim(A, 3)) is CommitAnswer.ALREADY
    assert await spans_of(catalog, A) == [(5, 9, 2)]
    assert [each.log_start_offset for each in await catalog.partitions([0])] == [7]
    assert await catalog.body(CommitId(owner.me, 1)) is None
    assert await catalog.trim(owner.trim(A, 11)) is CommitAnswer.OFFSETS
    assert await catalog.trim(owner.trim(A, 10)) is CommitAnswer.OK
    assert await spans_of(catalog, A) == []
    assert await catalog.commit(owner.commit(3, span(A, 10, 19))) is CommitAnswer.OK


async def test_only_the_owner_moves_a_log_start(catalog: FleetCatalog) -> None:
    owner = await owner_of_all(catalog)
    await catalog.commit(owner.commit(1, span(A, 0, 4)))
    shard, *_ = owner.shards
    order = owner.trim(A, 5)
    assert await catalog.trim(order._replace(partition=B)) is CommitAnswer.NO_PARTITION
    earlier = shard._replace(epoch=shard.epoch - 1)
    assert await catalog.trim(order._replace(shard=earlier)) is CommitAnswer.STALE
    await catalog.resign(owner.me)
    assert await catalog.trim(order) is CommitAnswer.FENCED
    assert await spans_of(catalog, A) == [(0, 4, 1)]


async def test_what_is_in_segments_needs_no_commit(catalog: FleetCatalog) -> None:
    owner = await owner_of_all(catalog)
    for number, first in enumerate((0, 5, 10), 1):
        await catalog.commit(owner.commit(number, span(A, first, first + 4)))
    assert [each.manifest for each in await catalog.partitions([0])] == [None]
    assert await catalog.name_manifest(owner.naming(A, 1, 7)) is CommitAnswer.OK
    assert await spans_of(catalog, A) == [(5, 9, 2), (10, 14, 3)]
    assert await catalog.body(CommitId(owner.me, 1)) is None
    assert await catalog.name_manifest(owner.naming(A, 1, 7)) is CommitAnswer.ALREADY
    assert await catalog.name_manifest(owner.naming(A, 3, 15)) is CommitAnswer.OK
    assert await spans_of(catalog, A) == [(10, 14, 3)], "the newest says where it ends"
    assert await catalog.name_manifest(owner.naming(A, 2, 15)) is CommitAnswer.ALREADY, "late"
    epoch = owner.shards[0].epoch
    assert [each.manifest for each in await catalog.partitions([0])] == [ManifestName(epoch, 3)]
    assert await catalog.name_manifest(owner.naming(A, 4, 16)) is CommitAnswer.OFFSETS
    assert await catalog.commit(owner.commit(4, span(A, 15, 19))) is CommitAnswer.OK
    assert await catalog.name_manifest(owner.naming(A, 4, 15)) is CommitAnswer.OK
    assert await spans_of(catalog, A) == [(15, 19, 4)]


async def test_only_the_owner_names_a_manifest_and_a_later_one_counts(
    catalog: FleetCatalog,
) -> None:
    owner = await owner_of_all(catalog)
    await catalog.commit(owner.commit(1, span(A, 0, 4)))
    order = owner.naming(A, 9, 5)
    assert await catalog.name_manifest(order._replace(partition=B)) is CommitAnswer.NO_PARTITION
    earlier = owner.shards[0]._replace(epoch=owner.shards[0].epoch - 1)
    assert await catalog.name_manifest(order._replace(shard=earlier)) is CommitAnswer.STALE
    assert await catalog.name_manifest(order) is CommitAnswer.OK
    next_one = await lives(catalog, 2)
    assert await catalog.give(owner.me, owner.shards[0], next_one)
    assert await catalog.name_manifest(order._replace(number=10)) is CommitAnswer.STALE
    mine = order._replace(incarnation=next_one, shard=OwnedShard(0, 2), number=1)
    assert await catalog.name_manifest(mine) is CommitAnswer.OK, "numbers begin anew"
    assert [each.manifest for each in await catalog.partitions([0])] == [ManifestName(2, 1)]
    await catalog.resign(next_one)
    assert await catalog.name_manifest(mine._replace(number=2)) is CommitAnswer.FENCED


async def test_a_document_is_changed_from_the_version_before(catalog: FleetCatalog) -> None:
    me = await lives(catalog)
    one, two = Document("settings", 1, b"one"), Document("settings", 2, b"two")
    assert await catalog.documents({}) == []
    assert not await catalog.put_document(two)
    assert await catalog.put_document(one)
    assert await catalog.put_document(one), "it is as it was asked for"
    assert not await catalog.put_document(one._replace(content=b"another"))
    assert await catalog.put_document(two)
    assert not await catalog.put_document(one)
    assert await catalog.documents({}) == [two]
    assert await catalog.documents({"settings": 1}) == [two]
    assert await catalog.documents({"settings": 2}) == []
    renewed = await catalog.renew(me)
    assert renewed is not None
    assert renewed.metadata_version == await catalog.version() == 2


async def test_producer_ids_are_given_out_once(catalog: FleetCatalog) -> None:
    assert await catalog.producer_ids_end() == 0
    assert [await catalog.producer_ids(1000) for _ in range(3)] == [0, 1000, 2000]
    assert await catalog.producer_ids_end() == 3000
