"""`horolog fleet`: the rows as an operator sees and changes them, on a real PostgreSQL."""

import asyncio
import subprocess
from collections.abc import Iterator
from uuid import UUID

import pytest

from broker.fleet.catalog.postgres import PostgresCatalog
from broker.fleet.catalog.rows import NodeAddress, Registration
from tests.support.fleet.postgres_server import PostgresServer, is_postgres_published, postgres
from tests.support.worlds.broker_process import HOROLOG, own_environment


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    if not is_postgres_published():
        pytest.skip("the package registry has no PostgreSQL for this machine")
    with postgres() as running:
        yield running


def fleet(*arguments: str, url: str | None = None) -> "subprocess.CompletedProcess[str]":
    environment = {**own_environment(), **({"HOROLOG_FLEET_URL": url} if url else {})}
    return subprocess.run(
        [HOROLOG, "fleet", *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
        env=environment,
    )  # fmt: skip


async def lives(url: str) -> None:
    """Node 1 lives and has all shards; node 2 has lived."""
    catalog = PostgresCatalog(url)
    for node_id in (1, 2):
        address = NodeAddress(f"broker{node_id}", 9092)
        order = Registration(node_id, UUID(int=node_id), address, "1.2.3")
        me = await catalog.register(order)
        assert me is not None
        if node_id == 1:
            await catalog.take(me, 3)
        else:
            await catalog.resign(me)
    await catalog.close()


def test_the_schema_is_made_once(server: PostgresServer) -> None:
    url = server.new_database()
    first = fleet("migrate", "--url", url, "--cluster-id", "mine")
    assert (first.returncode, first.stderr) == (0, "")
    assert "0001_ownership was made" in first.stdout
    assert fleet("migrate", "--url", url).stdout == "nothing was to be done\n"
    assert asyncio.run(_cluster_id(url)) == "mine"


async def _cluster_id(url: str) -> str:
    catalog = PostgresCatalog(url)
    facts = await catalog.facts()
    await catalog.close()
    return facts.cluster_id


def test_status_shows_who_lives_and_what_nobody_owns(server: PostgresServer) -> None:
    url = server.new_fleet(4)
    asyncio.run(lives(url))
    shown = fleet("status", url=url)
    assert shown.returncode == 0, shown.stderr
    lines = [" ".join(each.split()) for each in shown.stdout.splitlines()]
    assert lines == [
        "node address version life shards KB/s clock ms state",
        "1 broker1:9092 1.2.3 1 3 0 lives",
        "2 broker2:9092 1.2.3 1 0 0 is gone",
        "4 shards, 1 without an owner that lives.",
    ]


def test_a_node_is_drained_and_may_have_shards_again(server: PostgresServer) -> None:
    url = server.new_fleet(4)
    asyncio.run(lives(url))
    assert fleet("drain", "1", url=url).returncode == 0
    assert "gives its shards away" in fleet("status", url=url).stdout
    assert fleet("drain", "1", "--undo", url=url).returncode == 0
    assert "gives its shards away" not in fleet("status", url=url).stdout
    refused = fleet("drain", "9", url=url)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "horolog fleet drain: no node 9 was ever in this fleet\n"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("postgresql://nobody@127.0.0.1:1/fleet", "is that the URL of the fleet?"),
        ("postgresql://me:secret@127.0.0.1/fleet", "PGPASSFILE"),
        ("mysql://127.0.0.1/fleet", "postgresql://"),
    ],
)
def test_a_url_that_leads_nowhere_is_refused_in_one_line(url: str, why: str) -> None:
    refused = fleet("status", url=url)
    assert refused.returncode == 2
    assert why in refused.stderr
    assert "Traceback" not in refused.stderr
    assert "secret" not in refused.stderr


def test_a_database_without_a_fleet_is_named(server: PostgresServer) -> None:
    refused = fleet("status", url=server.new_database())
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr
