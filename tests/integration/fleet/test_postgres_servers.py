"""A database with several servers, of which the first accepts connections and never answers."""

import asyncio
import socket
import time
from collections.abc import Iterator
from uuid import UUID

import pytest

from broker.fleet.catalog.line import LineLimits
from broker.fleet.catalog.listener import ChangeListener
from broker.fleet.catalog.port import CatalogAway, CatalogRefused
from broker.fleet.catalog.postgres import PostgresCatalog
from broker.fleet.catalog.schema import NewFleet, migrate
from broker.fleet.catalog.servers import each_server
from tests.support.fleet.postgres_server import PostgresServer, is_postgres_published, postgres

LIMITS = LineLimits(connect=1.5, answer=5)
FLEET = NewFleet(UUID(int=1), "cluster", 4)
needs_postgres = pytest.mark.skipif(
    not is_postgres_published(), reason="the package registry has no PostgreSQL for this machine"
)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres() as running:
        yield running


@pytest.fixture
def silent() -> Iterator[str]:
    """A place that accepts and says nothing, as a stopped machine's."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(50)
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def behind(first: str, url: str) -> str:
    """The same database, with another server named before its own."""
    return url.replace("@127.0.0.1:", f"@{first},127.0.0.1:")


@needs_postgres
async def test_the_next_one_is_asked_and_comes_first_from_then_on(
    server: PostgresServer, silent: str
) -> None:
    url = behind(silent, await asyncio.to_thread(server.new_fleet, 4))
    catalog = PostgresCatalog(url, LIMITS)
    assert (await catalog.topics()).version == 0
    await catalog._others.run(lambda connection: connection.close())
    began = time.monotonic()
    assert (await catalog.topics()).version == 0
    assert time.monotonic() - began < 1
    listener = ChangeListener(url, ["horolog_topics"], LIMITS)
    assert await listener.wait(0.1)
    listener.close()
    await catalog.close()


@needs_postgres
async def test_the_schema_is_made_through_the_next_one(server: PostgresServer, silent: str) -> None:
    url = behind(silent, await asyncio.to_thread(server.new_database))
    assert await asyncio.wait_for(migrate(url, FLEET), 20)


@needs_postgres
async def test_what_refuses_is_named_rather_than_what_is_silent(
    server: PostgresServer, silent: str
) -> None:
    catalog = PostgresCatalog(behind(silent, server.url("nothing")), LIMITS)
    with pytest.raises(CatalogRefused, match="nothing"):
        await catalog.topics()
    await catalog.close()


async def test_all_that_are_silent_are_away(silent: str) -> None:
    catalog = PostgresCatalog(f"postgresql://u@{silent},{silent}/db?sslmode=disable", LIMITS)
    began = time.monotonic()
    with pytest.raises(CatalogAway):
        await catalog.topics()
    assert 2.5 < time.monotonic() - began < 5
    await catalog.close()


@pytest.mark.parametrize(
    ("url", "each"),
    [
        ("postgresql://u@a/db", ["postgresql://u@a/db"]),
        ("postgresql://u@a:1,[::1]:2/db?x=y", ["postgresql://u@a:1/db?x=y",
                                               "postgresql://u@[::1]:2/db?x=y"]),
        ("postgres:///db?host=/tmp", ["postgres:///db?host=/tmp"]),
        ("postgres:///db?host=a,b&port=7", ["postgres:///db?host=a&port=7",
                                            "postgres:///db?host=b&port=7"]),
        ("postgres:///db?host=a,b&port=7,8", ["postgres:///db?host=a&port=7",
                                              "postgres:///db?host=b&port=8"]),
        ("postgres:///db?host=a,b", ["postgres:///db?host=a", "postgres:///db?host=b"]),
        ("postgres:///db?host=a,b&port=7,8,9", ["postgres:///db?host=a,b&port=7,8,9"]),
    ],
)  # fmt: skip
def test_each_server_has_a_url(url: str, each: list[str]) -> None:
    assert each_server(url) == each
