"""A fleet whose PostgreSQL was brought back to an earlier state, while nodes and disks ran on."""

import asyncio
from contextlib import suppress
from pathlib import Path

import asyncpg
import pytest

from broker.fleet.catalog.port import CatalogError
from broker.fleet.catalog.postgres import PostgresCatalog
from broker.fleet.catalog.rows import Document, NewTopics, PartitionKey, TopicRow
from broker.fleet.catalog.schema import migrate
from tests.integration.fleet.test_nodes_on_postgres import (
    LIMITS,
    PATIENCE_SECONDS,
    TOPIC,
    Machine,
    MemoryObjects,
    RealFleet,
)
from tests.integration.fleet.test_postgres_catalog import FLEET, registered
from tests.support.fleet.machines.sim_host import Value
from tests.support.fleet.postgres_server import is_postgres_published, postgres
from tests.support.patience import until

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(
        not is_postgres_published(), reason="the package registry has no PostgreSQL here"
    ),
]
KEY = PartitionKey(TOPIC, 0)


async def one_life(machine: Machine, value: Value) -> None:
    """The machine takes over, has a value acknowledged, and is killed."""
    machine.start()
    fleet = RealFleet([machine])
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await fleet.produce(KEY, value):
            pass
    await machine.kill()


async def test_a_disk_that_saw_what_was_lost_takes_it_for_nothing_that_came_after_it(
    tmp_path: Path,
) -> None:
    with postgres() as server:
        url = await asyncio.to_thread(server.new_fleet, 4)
        catalog = PostgresCatalog(url, LIMITS)
        facts = await catalog.facts()
        await catalog.create_topics(NewTopics([TopicRow(TOPIC, "t", [0])]))
        await catalog.close()
        objects = MemoryObjects()
        one, other = (Machine(url, facts.fleet_id, each, objects) for each in (1, 2))
        before, lost, after = (Value(each, 0) for each in range(3))

        await one_life(one, before)
        await asyncio.to_thread(server.back_up, tmp_path / "copy")
        await one_life(other, lost)
        await asyncio.to_thread(server.restore, tmp_path / "copy")
        await one_life(one, after)
        other.start()
        await asyncio.to_thread(until, lambda: KEY in other.host.served, "it takes nothing over")
        read = [each.value for each in other.host.served[KEY].by_offset().values()]
        assert read == [before, after]
        await other.kill()


async def answered(catalog: PostgresCatalog) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            with suppress(CatalogError):
                await catalog.version()
                return


async def test_what_was_given_out_and_lost_is_never_given_out_again(tmp_path: Path) -> None:
    """Epochs, lives, producer ids, and versions of what clients set."""
    with postgres() as server:
        catalog = PostgresCatalog(await asyncio.to_thread(server.new_fleet, 4), LIMITS)
        early = await registered(catalog, 1)
        await catalog.take(early, 4)
        await catalog.put_document(Document("users", 1, b"alice"))
        await asyncio.to_thread(server.back_up, tmp_path / "copy")

        await answered(catalog)
        late = await registered(catalog, 1)
        epochs = [each.epoch for each in await catalog.take(late, 4)]
        ids = await catalog.producer_ids(1000)
        assert await catalog.put_document(Document("users", 2, b"bob"))
        version = await catalog.version()
        await asyncio.to_thread(server.restore, tmp_path / "copy")

        await answered(catalog)
        assert await catalog.renew(early) is None, "what it had may be another's by now"
        now = await registered(catalog, 1)
        assert now.number > late.number
        assert min(each.epoch for each in await catalog.take(now, 4)) > max(epochs)
        assert await catalog.producer_ids(1000) >= ids + 1000
        assert await catalog.version() > version
        [users] = await catalog.documents({"users": 2})
        assert users.content == b"alice"
        assert await catalog.put_document(Document("users", users.version + 1, b"carol"))
        await catalog.close()


@pytest.mark.parametrize("known", [0, 1])
async def test_what_was_first_set_in_the_lost_time_can_be_changed(
    tmp_path: Path, known: int
) -> None:
    """By a node that knows it, and by one that does not: the others see that it is another one."""
    with postgres() as server:
        catalog = PostgresCatalog(await asyncio.to_thread(server.new_fleet, 4), LIMITS)
        await catalog.version()
        await asyncio.to_thread(server.back_up, tmp_path / "copy")
        await answered(catalog)
        assert await catalog.put_document(Document("users", 1, b"alice"))
        await asyncio.to_thread(server.restore, tmp_path / "copy")

        await answered(catalog)
        assert not await catalog.put_document(Document("users", 70_000, b"of no time"))
        assert await catalog.documents({}) == [], "nobody can read what there is not"
        assert await catalog.put_document(Document("users", known + 1, b"bob"))
        [users] = await catalog.documents({"users": known + 1})
        assert users.content == b"bob"
        assert await catalog.put_document(Document("users", users.version + 1, b"carol"))
        await catalog.close()


async def test_a_restart_of_the_same_database_skips_nothing() -> None:
    with postgres() as server:
        catalog = PostgresCatalog(await asyncio.to_thread(server.new_fleet, 4), LIMITS)
        me = await registered(catalog, 1)
        server.kill()
        await asyncio.to_thread(server.start)
        await answered(catalog)
        assert await catalog.renew(me) is not None
        assert [each.epoch for each in await catalog.take(me, 4)] == [1] * 4
        await catalog.close()


async def test_who_only_reads_changes_nothing_of_a_restored_database(tmp_path: Path) -> None:
    with postgres() as server:
        url = await asyncio.to_thread(server.new_fleet, 4)
        await asyncio.to_thread(server.back_up, tmp_path / "copy")
        await asyncio.to_thread(server.restore, tmp_path / "copy")
        for only_reads, version in ((True, 0), (False, 65536), (False, 65536)):
            catalog = PostgresCatalog(url, LIMITS, only_reads=only_reads)
            assert await catalog.version() == version
            await catalog.close()


async def test_a_role_of_brokers_needs_no_more_than_the_tables() -> None:
    with postgres() as server:
        url = await asyncio.to_thread(server.new_database)
        await migrate(url, FLEET)
        owner = await asyncpg.connect(url)
        await owner.execute("CREATE ROLE broker LOGIN; UPDATE fleet SET history = 'of before'")
        await owner.execute(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO broker"
        )
        await owner.close()
        catalog = PostgresCatalog(url.replace("horolog@", "broker@"), LIMITS)
        assert (await registered(catalog, 1)).number == 1
        assert await catalog.version() == 65536
        await catalog.close()
