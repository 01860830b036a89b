"""The catalog on a PostgreSQL that dies, stops answering, or is not fit to keep a fleet."""

import asyncio
import signal
from collections.abc import Iterator
from uuid import UUID, uuid4

import asyncpg
import pytest

from broker.fleet.catalog import schema
from broker.fleet.catalog.line import LineLimits
from broker.fleet.catalog.port import (
    CatalogAway,
    CatalogError,
    CatalogReadOnly,
    CatalogRefused,
    CatalogTimedOut,
)
from broker.fleet.catalog.postgres import PostgresCatalog
from broker.fleet.catalog.rows import (
    CatalogCommit,
    Checkpoint,
    CommitAnswer,
    CommitId,
    Document,
    ImportAnswer,
    ImportedPartition,
    Incarnation,
    NewTopics,
    NodeAddress,
    PartitionKey,
    Registration,
    Span,
    TopicImport,
    TopicRow,
)
from broker.fleet.catalog.schema import NewFleet, SchemaStep, migrate, migrations
from tests.support.fleet.postgres_server import PostgresServer, is_postgres_published, postgres

TOPIC = UUID(int=7)
LIMITS = LineLimits(connect=2, answer=1)
FLEET = NewFleet(UUID(int=1), "cluster", 4)

pytestmark = pytest.mark.skipif(
    not is_postgres_published(), reason="the package registry has no PostgreSQL for this machine"
)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres() as running:
        yield running


async def new_fleet(server: PostgresServer) -> str:
    return await asyncio.to_thread(server.new_fleet, 4)


async def first_commit(catalog: PostgresCatalog) -> CatalogCommit:
    """A commit that may be made, of an owner of all shards."""
    address = NodeAddress("localhost", 9092)
    me = await catalog.register(Registration(1, UUID(int=1), address, "1"))
    assert me is not None
    shards = await catalog.take(me, 4)
    await catalog.create_topics(NewTopics([TopicRow(TOPIC, "t", [0])]))
    span = Span(PartitionKey(TOPIC, 0), 0, 4, 1, 0, 10, 5)
    return CatalogCommit(CommitId(me, 1), 3, shards, [span], b"0123456789")


def later_commit(first: CatalogCommit, number: int) -> CatalogCommit:
    """That of this number, of the next five offsets."""
    [span], begin = first.spans, 5 * (number - 1)
    moved = span._replace(base_offset=begin, last_offset=begin + 4)
    return first._replace(commit_id=first.commit_id._replace(number=number), spans=[moved])


async def asked_until_answered(catalog: PostgresCatalog, order: CatalogCommit) -> CommitAnswer:
    for _ in range(100):
        try:
            return await catalog.commit(order)
        except CatalogError:
            await asyncio.sleep(0.1)
    raise AssertionError("no answer")


async def test_what_it_answered_is_there_after_its_death(server: PostgresServer) -> None:
    catalog = PostgresCatalog(await new_fleet(server), LIMITS)
    order = await first_commit(catalog)
    assert await catalog.commit(order) is CommitAnswer.OK
    server.kill()
    with pytest.raises(CatalogAway):
        await catalog.topics()
    await asyncio.to_thread(server.start)
    assert await asked_until_answered(catalog, order) is CommitAnswer.ALREADY
    assert await catalog.body(order.commit_id) == order.body
    await catalog.close()


async def test_a_server_that_stops_answering_is_left_alone(server: PostgresServer) -> None:
    """The outcome is open; the same commit, sent again later, tells it."""
    url = await new_fleet(server)
    catalog, gate = PostgresCatalog(url, LIMITS), await asyncpg.connect(url)
    order = await first_commit(catalog)
    async with gate.transaction():
        await gate.execute("LOCK TABLE wal")
        with pytest.raises(CatalogTimedOut):
            await catalog.commit(order)
    assert await asked_until_answered(catalog, order) in {CommitAnswer.OK, CommitAnswer.ALREADY}
    assert await asked_until_answered(catalog, order) is CommitAnswer.ALREADY
    await gate.close()
    await catalog.close()


WAITING = """
SELECT count(*) FROM pg_stat_activity
  WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


async def test_statements_that_wait_for_a_lock_leave_nothing_behind_that_waits_on(
    server: PostgresServer,
) -> None:
    """Their connections would pile up until PostgreSQL takes no further one of anybody."""
    url = await new_fleet(server)
    catalog, gate = PostgresCatalog(url, LIMITS), await asyncpg.connect(url)
    me = await registered(catalog, 1)
    async with gate.transaction():
        await gate.execute("LOCK TABLE node")
        for _ in range(3):
            with pytest.raises(CatalogTimedOut):
                await catalog.renew(me)
        assert await gate.fetchval(WAITING) == 0
    assert await catalog.renew(me) is not None
    await gate.close()
    await catalog.close()


async def test_a_stopped_process_is_no_hang(server: PostgresServer) -> None:
    catalog = PostgresCatalog(await new_fleet(server), LIMITS)
    server.signal(signal.SIGSTOP)
    try:
        with pytest.raises((CatalogAway, CatalogTimedOut)):
            await catalog.topics()
    finally:
        server.signal(signal.SIGCONT)
    assert (await catalog.topics()).version == 0
    await catalog.close()


async def test_two_copies_of_a_commit_at_once_count_once(server: PostgresServer) -> None:
    url = await new_fleet(server)
    catalogs = [PostgresCatalog(url, LIMITS) for _ in range(4)]
    first = await first_commit(catalogs[0])
    for number in range(1, 40):  # how far each copy is when another ends is for chance to say
        order = later_commit(first, number)
        answers = await asyncio.gather(*(asked_until_answered(each, order) for each in catalogs))
        assert sorted(answers) == [CommitAnswer.ALREADY] * 3 + [CommitAnswer.OK]
    for each in catalogs:
        await each.close()


async def test_who_waits_may_go_and_the_statement_does_not(server: PostgresServer) -> None:
    """A cancelled statement would be one that PostgreSQL calls done before its standbys are."""
    url = await new_fleet(server)
    catalog, gate = PostgresCatalog(url, LineLimits(2, 30)), await asyncpg.connect(url)
    order = await first_commit(catalog)
    async with gate.transaction():
        await gate.execute("LOCK TABLE wal")
        waiting = asyncio.ensure_future(catalog.commit(order))
        await asyncio.sleep(0.2)
        waiting.cancel()
        await asyncio.sleep(0.2)
    await catalog.close()
    assert await gate.fetchval("SELECT count(*) FROM wal WHERE seq = 1") == 1
    await gate.close()


async def two_owners(url: str) -> tuple[PostgresCatalog, Checkpoint, Checkpoint]:
    """Checkpoints of two nodes: each takes the place of its span of one commit of a third."""
    catalog = PostgresCatalog(url, LIMITS)
    await catalog.create_topics(NewTopics([TopicRow(TOPIC, "t", [0, 1])]))
    dead = await registered(catalog, 9)
    shards = (await catalog.take(dead, 4))[:2]
    spans = [Span(PartitionKey(TOPIC, each), 0, 4, 1, 10 * each, 10, 5) for each in range(2)]
    both = CatalogCommit(CommitId(dead, 1), 3, shards, spans, None, "wal/both")
    assert await catalog.commit(both) is CommitAnswer.OK
    last = both._replace(
        commit_id=CommitId(dead, 2),
        spans=[spans[0]._replace(base_offset=5, last_offset=9)],
        object_key="wal/last",
    )
    assert await catalog.commit(last) is CommitAnswer.OK
    await catalog.resign(dead)
    orders = list[Checkpoint]()
    for number in range(2):
        me = await registered(catalog, number)
        mine = await catalog.take(me, 1)
        assert [each.shard_id for each in mine] == [number]
        key = f"wal/checkpoint-{number}"
        order = Checkpoint(CommitId(me, 1), 7, mine, [spans[number]], (), key, -1000)
        orders.append(order)
    return catalog, orders[0], orders[1]


async def registered(catalog: PostgresCatalog, node_id: int) -> Incarnation:
    address = NodeAddress("localhost", 9092)
    me = await catalog.register(Registration(node_id, UUID(int=node_id), address, "1"))
    assert me is not None
    return me


class InTransaction:
    """A connection whose statement counts when `end` says so: it stands for one that takes long."""

    def __init__(self, url: str) -> None:
        self.catalog = PostgresCatalog(url, LineLimits(5, 30))

    async def begin(self) -> None:
        await self.catalog._commits.run(lambda line: line.execute("BEGIN"))

    async def end(self) -> None:
        await self.catalog._commits.run(lambda line: line.execute("COMMIT"))


async def test_what_two_at_once_took_the_last_names_of_goes(server: PostgresServer) -> None:
    url = await new_fleet(server)
    catalog, one, other = await two_owners(url)
    slow, quick = InTransaction(url), PostgresCatalog(url, LineLimits(5, 30))
    await slow.begin()
    assert await slow.catalog.checkpoint(one) is CommitAnswer.OK
    waiting = asyncio.ensure_future(quick.checkpoint(other))
    await asyncio.sleep(0.5)
    await slow.end()
    assert await waiting is CommitAnswer.OK
    assert await catalog.trash(9) == ["wal/both"]
    for each in (slow.catalog, quick, catalog):
        await each.close()


async def test_two_that_take_the_same_names_the_other_way_round_are_no_deadlock(
    server: PostgresServer,
) -> None:
    url = await new_fleet(server)
    catalogs = [PostgresCatalog(url, LineLimits(5, 30)) for _ in range(2)]
    topics = [UUID(int=number) for number in range(1, 41)]
    me = await registered(catalogs[0], 1)
    shards = await catalogs[0].take(me, 4)
    rows = [TopicRow(each, f"t{each.int}", [0]) for each in topics]
    await catalogs[0].create_topics(NewTopics(rows))
    for number in range(1, 31):
        spans = [Span(PartitionKey(each, 0), number - 1, number - 1, 1, 0, 9, 5) for each in topics]
        spans = spans if number % 2 else spans[::-1]
        order = CatalogCommit(CommitId(me, number), 3, shards, spans, b"x" * 9)
        assert await catalogs[0].commit(order) is CommitAnswer.OK
    gone = await asyncio.gather(
        *(catalogs[each.int % 2].delete_topic(each, -1000) for each in topics)
    )
    assert all(gone)
    left = await asyncpg.connect(url)
    assert await left.fetch("SELECT seq FROM wal WHERE seq > 0 AND inline IS NOT NULL") == []
    assert await left.fetchval("SELECT count(*) FROM wal WHERE seq > 0") == 1, "the newest"
    await left.close()
    for each in catalogs:
        await each.close()


async def test_what_was_left_behind_is_swept(server: PostgresServer) -> None:
    url = await new_fleet(server)
    catalog, *_ = await two_owners(url)
    there = await asyncpg.connect(url)
    await there.execute("DELETE FROM wal_span WHERE seq = 1")
    assert await catalog.sweep(1, -1000) == 1
    assert await catalog.sweep(9, -1000) == 1
    assert await catalog.sweep(9, -1000) == 0
    assert await catalog.trash(9) == ["wal/both"]
    newest = await there.fetch("SELECT node_id, seq FROM wal ORDER BY node_id")
    assert [tuple(each) for each in newest] == [(0, 0), (1, 0), (9, 2)]
    assert await catalog.unnamed(["wal/both", "wal/last", "wal/none"]) == ["wal/none"]
    await there.close()
    await catalog.close()


async def test_a_server_that_takes_no_changes_is_named(server: PostgresServer) -> None:
    url = await new_fleet(server)
    catalog = PostgresCatalog(f"{url}?options=-c%20default_transaction_read_only%3Don", LIMITS)
    assert (await catalog.topics()).version == 0
    with pytest.raises(CatalogReadOnly):
        await catalog.create_topics(NewTopics([TopicRow(TOPIC, "t", [0])]))
    await catalog.close()


@pytest.mark.parametrize("database", ["nothing", "empty"])
async def test_a_database_without_a_fleet_is_refused(server: PostgresServer, database: str) -> None:
    url = server.url("nothing")
    if database == "empty":
        url = await asyncio.to_thread(server.new_database)
    catalog = PostgresCatalog(url, LIMITS)
    with pytest.raises(CatalogRefused):
        await catalog.topics()
    await catalog.close()


async def test_the_schema_is_made_once_whoever_comes_first(server: PostgresServer) -> None:
    url = await asyncio.to_thread(server.new_database)
    fleets = [NewFleet(uuid4(), f"cluster-{each}", 4) for each in range(4)]
    applied = await asyncio.gather(*(migrate(url, each) for each in fleets))
    assert sorted(map(len, applied)) == [0, 0, 0, len(migrations())]
    catalog = PostgresCatalog(url, LIMITS)
    facts = await catalog.facts()
    assert facts.fleet_id in {each.fleet_id for each in fleets}
    assert len(await catalog.shards()) == 4
    await catalog.close()


async def test_a_migration_that_waits_for_a_long_reader_holds_up_no_lease(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = await new_fleet(server)
    catalog = PostgresCatalog(url, LineLimits(5, 10))
    reader, there = await asyncpg.connect(url), await asyncpg.connect(url)
    me = await registered(catalog, 1)
    later = SchemaStep(9999, "later", "ALTER TABLE node ADD later int")
    monkeypatch.setattr(schema, "migrations", lambda: [*migrations(), later])
    async with reader.transaction():
        await reader.execute("SELECT FROM node")
        waiting = asyncio.ensure_future(migrate(url, FLEET))
        while not await there.fetchval(WAITING):
            assert not waiting.done()
        assert await catalog.renew(me) is not None
        with pytest.raises(CatalogTimedOut):
            await waiting
    assert await migrate(url, FLEET) == ["9999_later"]
    await there.close()
    await reader.close()
    await catalog.close()


async def test_a_migration_whose_process_is_stopped_gives_its_locks_up(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = "CREATE TABLE later AS SELECT current_setting('idle_in_transaction_session_timeout')"
    url = await new_fleet(server)
    monkeypatch.setattr(schema, "migrations", lambda: [SchemaStep(9999, "later", step)])
    await migrate(url, FLEET)
    there = await asyncpg.connect(url)
    assert await there.fetchval("TABLE later") == "10s"
    await there.close()


async def test_a_server_that_would_lose_what_it_answered_is_refused() -> None:
    with postgres() as careless:
        url = await asyncio.to_thread(careless.new_database)
        with pytest.raises(CatalogRefused, match="synchronous_commit = off"):
            await migrate(f"{url}?options=-c%20synchronous_commit%3Doff", FLEET)


ORDER = TopicImport(
    [TopicRow(TOPIC, "t", [0])],
    [ImportedPartition(PartitionKey(TOPIC, 0), 0, 0, 0, 0, 0)],
    {"users": b"alice", "settings": b"of one"},
    5000,
)


@pytest.mark.parametrize("order", [ORDER, ORDER._replace(topics=[], partitions=[])])
async def test_an_import_brings_all_texts_or_nothing(
    server: PostgresServer, order: TopicImport
) -> None:
    """Those of the fleet stay, so it is refused where they are others; topics or not."""
    catalog = PostgresCatalog(await new_fleet(server), LIMITS)
    await catalog.put_document(Document("quotas", 1, b"of before"))
    assert await catalog.import_topics(order) is ImportAnswer.DOCUMENTS
    assert not (await catalog.topics()).topics
    assert [each.name for each in await catalog.documents({})] == ["quotas"]
    assert await catalog.producer_ids_end() == 0
    await catalog.close()

    catalog = PostgresCatalog(await new_fleet(server), LIMITS)
    await catalog.put_document(Document("users", 1, b"alice"))
    assert await catalog.import_topics(order) is ImportAnswer.OK
    found = {each.name: each.content for each in await catalog.documents({})}
    assert found == order.documents
    assert len((await catalog.topics()).topics) == len(order.topics)
    assert await catalog.producer_ids_end() == 5000
    assert (await catalog.import_topics(order)).value in {"ok", "already"}, "once more"
    await catalog.put_document(Document("users", 2, b"bob"))
    again = await catalog.import_topics(order)
    assert again is (ImportAnswer.ALREADY if order.topics else ImportAnswer.DOCUMENTS)
    await catalog.close()
