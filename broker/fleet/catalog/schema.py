"""The schema of a fleet: numbered files, each applied once and in order, under a lock."""

import re
from importlib import resources
from typing import NamedTuple
from uuid import UUID

from broker.fleet.catalog.faults import named_errors
from broker.fleet.catalog.line import SESSION
from broker.fleet.catalog.port import CatalogRefused
from broker.fleet.catalog.servers import Connection, Servers

LOCK_KEY = 0x686F726F6C6F67
"""Of PostgreSQL's advisory lock that one migration at a time has."""
MIGRATION = re.compile(r"(\d{4})_(\w+)\.sql")
MADE = """
CREATE TABLE IF NOT EXISTS migration (
  number int PRIMARY KEY, name text NOT NULL, applied timestamptz NOT NULL DEFAULT now())
"""
FLEET = (
    "INSERT INTO fleet (fleet_id, cluster_id, shards) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
)
SHARDS = """
INSERT INTO shard (shard_id) SELECT generate_series(0, (SELECT shards FROM fleet) - 1)
  ON CONFLICT DO NOTHING
"""
ALONE = {**SESSION, "idle_in_transaction_session_timeout": "10s"}
"""Settings of a migration's connection: one whose process was stopped keeps its locks no longer."""
LOCK_TIMEOUT = "SET LOCAL lock_timeout = '1s'"
"""Of a change of a table. Behind one that waits for a long reader, such as a back-up of the
database, all statements of the fleet would wait, its leases first.
"""
SAFE = ("fsync", "full_page_writes", "synchronous_commit")
"""Settings without which PostgreSQL answers before a commit is on a disk, or loses it there."""


class NewFleet(NamedTuple):
    """A fleet that is made unless there is one."""

    fleet_id: UUID
    cluster_id: str
    shards: int = 64


class SchemaStep(NamedTuple):
    """One file."""

    number: int
    name: str
    text: str


def migrations() -> list[SchemaStep]:
    """All of this version, in order."""
    files = (resources.files(__package__) / "migrations").iterdir()
    return sorted(
        SchemaStep(int(match[1]), match[2], file.read_text(encoding="utf-8"))
        for file in files
        if (match := MIGRATION.fullmatch(file.name)) is not None
    )


async def migrate(url: str, fleet: NewFleet) -> list[str]:
    """Brings the schema up to this version; names of what was applied. CatalogError.

    CatalogTimedOut while others use a table that is to be changed: nothing was. Needs the rights of
    the tables' owner where anything is to be done.
    """
    with named_errors():
        connection = await Servers(url).connect(settings=ALONE)
        try:
            async with connection.transaction():
                return await _migrate(connection, fleet)
        finally:
            connection.terminate()


async def _migrate(connection: Connection, fleet: NewFleet) -> list[str]:
    await _check(connection)
    await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK_KEY)
    await connection.execute(LOCK_TIMEOUT)
    if await connection.fetchval("SELECT to_regclass('migration')") is None:
        await connection.execute(MADE)
    known = {row["number"] for row in await connection.fetch("SELECT number FROM migration")}
    applied = []
    for each in migrations():
        if each.number not in known:
            await connection.execute(each.text)
            await connection.execute("INSERT INTO migration VALUES ($1, $2)", *each[:2])
            applied.append(f"{each.number:04}_{each.name}")
    if await connection.fetchval("SELECT count(*) FROM fleet") == 0:
        await connection.execute(FLEET, *fleet)
        await connection.execute(SHARDS)
    return applied


async def _check(connection: Connection) -> None:
    for name in SAFE:
        value = await connection.fetchval("SELECT current_setting($1)", name)
        if value in {"off", "local"}:
            raise CatalogRefused(
                f"PostgreSQL has {name} = {value}: what it answered would be lost with its machine"
            )
