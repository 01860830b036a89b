"""Cost of a gigabyte in a fleet: rows and write-ahead log of PostgreSQL, requests to the store.

All that happens while records are sent evenly, and until what is due after them is done: commits,
checkpoints, segments that are copied, renewals of leases. Of one fleet; there is nothing beside it.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import asyncpg

from tests.bench.cell import Cell, Figure, Scale
from tests.bench.fleet_cells import RATES, make_topic, send, started_fleet
from tests.bench.peers import Peer
from tests.support.tier.fault_proxy import fault_proxy
from tests.support.tier.s3_calls import Call
from tests.support.tier.s3_server import S3Server

LASTS = 4
"""Times the seconds of a scale: segments close within it at the higher rates."""
SETTLES_SECONDS = 3.0
GIGA = 1e9
_ROWS = "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables"
_WAL = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"


class Count(NamedTuple):
    """All that was done up to a moment."""

    rows: float
    log_bytes: float
    requests: float


async def _counted(url: str, requests: int) -> Count:
    connection = await asyncpg.connect(url)
    try:
        rows, log = await connection.fetchval(_ROWS), await connection.fetchval(_WAL)
    finally:
        await connection.close()
    return Count(float(rows), float(log), requests)


@contextmanager
def _counting(calls: list[Call], store: S3Server) -> Iterator[S3Server]:
    with fault_proxy(store.address) as proxy:
        proxy.calls = calls
        yield store._replace(address=proxy.address)


def measure(megabytes: int, peer: Peer, scale: Scale) -> Mapping[str, float]:
    """At so many MB/s."""
    calls: list[Call] = []
    with started_fleet(peer, partial(_counting, calls)) as fleet:
        producer = make_topic(fleet.bootstrap)
        share = min(1.0, scale.seconds)
        send(producer, megabytes, share)
        time.sleep(SETTLES_SECONDS * share)  # PostgreSQL counts rows now and then
        before = asyncio.run(_counted(fleet.url, len(calls)))
        sent = len(send(producer, megabytes, scale.seconds * LASTS)) * 1000
        time.sleep(SETTLES_SECONDS * share)
        after = asyncio.run(_counted(fleet.url, len(calls)))
    gigabytes = sent / GIGA
    return {
        "rows/GB": (after.rows - before.rows) / gigabytes,
        "log/GB": (after.log_bytes - before.log_bytes) / 1e6 / gigabytes,
        "requests/GB": (after.requests - before.requests) / gigabytes,
    }


FIGURES = (
    Figure("rows/GB", "rows", "lower"),
    Figure("log/GB", "MB", "lower"),
    Figure("requests/GB", "requests", "lower"),
)
CELLS = tuple(
    Cell(f"fleet-cost-{each}", FIGURES, partial(measure, each), starts_nodes=True, only_ours=True)
    for each in RATES
)
