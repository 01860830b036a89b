"""`horolog fleet verify`: whole while brokers work; each kind of damage is named."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration.fleet.test_segments import copied, rows
from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.tier.s3_server import S3Server
from tests.support.worlds.broker_process import HOROLOG

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
RECORD, PATIENCE = 8000, 90.0
SETTINGS = {
    "remote.log.manager.task.interval.ms": "200",
    "horolog.fleet.checkpoint.ms": "60000",
}


@pytest.fixture
def fleet(both: tuple[PostgresServer, S3Server], tmp_path: Path) -> Iterator[FleetOfBrokers]:
    with some_brokers(tmp_path, both, (1, 2), SETTINGS) as brokers:
        yield brokers


def asked(fleet: FleetOfBrokers, *more: str) -> tuple[int, str, str]:
    """Exit status, output, and errors."""
    command = [str(HOROLOG), "fleet", "verify", "--url", fleet.url, "--store", fleet.store_url]
    done = subprocess.run(
        [*command, "--allow-http", *more], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False, timeout=120, env=fleet.environment,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def found(fleet: FleetOfBrokers, *more: str) -> tuple[int, list[tuple[str, str]]]:
    """Exit status; fault and detail of each finding."""
    status, out, err = asked(fleet, "--json", *more)
    assert out, err
    partitions: list[Any] = json.loads(out)["partitions"]
    return status, [(f["fault"], f["detail"]) for each in partitions for f in each["findings"]]


def fill(fleet: FleetOfBrokers) -> None:
    """Segments, objects of commits, and commits in rows."""
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    admin.create_topics([NewTopic("t", 2, config={"segment.bytes": str(1 << 20)})])["t"].result(30)
    writer = Producer({"bootstrap.servers": fleet.bootstrap, "linger.ms": 5})
    end = time.monotonic() + PATIENCE
    while copied(fleet) < 300:
        assert time.monotonic() < end
        for number in range(200):
            writer.produce("t", b"x" * RECORD, partition=number % 2)
        assert writer.flush(60) == 0
    for _ in range(4):
        for number in range(40):
            writer.produce("t", b"y" * RECORD, partition=number % 2)
        assert writer.flush(60) == 0


SECOND = """
    DELETE FROM wal_span WHERE ctid = (
      SELECT ctid FROM (
        SELECT ctid, row_number() OVER w AS n, count(*) OVER (PARTITION BY topic_id, part) AS c
        FROM wal_span WINDOW w AS (PARTITION BY topic_id, part ORDER BY base_offset)) x
      WHERE c >= 3 AND n = 2 LIMIT 1)
"""
"""A span between two others goes."""


def test_damage_of_each_kind_is_named(
    fleet: FleetOfBrokers, both: tuple[PostgresServer, S3Server]
) -> None:
    fill(fleet)
    assert found(fleet) == (0, [])
    for node_id in (1, 2):
        fleet.stop(node_id)
    assert found(fleet, "--deep") == (0, [])
    status, out, _ = asked(fleet, "t", "--deep")
    assert status == 0
    assert "All that 2 partitions have is there; their checksums are right." in out
    status, _, err = asked(fleet, "nowhere")
    assert (status, "no topic nowhere" in err) == (2, True)

    store = both[1].open(fleet.store_url.rpartition("/")[2])
    segments = sorted(each.key for each in store.list("topics/t/") if each.key.endswith(".log"))
    store.delete(segments[:1])
    assert found(fleet) == (3, [("segment", "it is not there")])
    [wal] = rows(fleet, "SELECT object_key FROM wal WHERE object_key IS NOT NULL LIMIT 1")
    body = bytearray(store.get(wal["object_key"]))
    body[len(body) // 2] ^= 1
    store.delete([wal["object_key"]])
    status, findings = found(fleet)
    assert ("commit", "it is not there") in findings
    store.put_new(wal["object_key"], bytes(body))
    assert found(fleet) == (3, [("segment", "it is not there")]), "sizes alone say nothing"
    status, findings = found(fleet, "--deep")
    assert any(fault == "commit" and "checksum" in detail for fault, detail in findings), findings
    rows(fleet, SECOND)
    status, findings = found(fleet)
    assert ("gap", "nothing has them") in findings
    manifests = [each.key for each in store.list("topics/t/") if "/epoch-" in each.key]
    store.delete(manifests)
    status, findings = found(fleet)
    assert status == 3
    assert [fault for fault, _ in findings].count("manifest") == 2
    status, _, err = asked(fleet, "--store", "s3://nowhere/nothing")
    assert status == 2
    assert "Traceback" not in err
