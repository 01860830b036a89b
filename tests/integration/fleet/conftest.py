"""The engines of a fleet, once for each module."""

from collections.abc import Iterator

import pytest

from tests.support.fleet.brokers import engines
from tests.support.fleet.postgres_server import PostgresServer, is_postgres_published
from tests.support.tier.s3_server import S3Server, is_seaweedfs_published


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[PostgresServer, S3Server]]:
    """A PostgreSQL and an object store."""
    if not is_postgres_published() or not is_seaweedfs_published():
        pytest.skip("the package registry has no such engine for this machine")
    with engines() as running:
        yield running
