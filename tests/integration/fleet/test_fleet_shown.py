"""Nodes of a fleet, as any of them shows them: what they lead and take, and their clocks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.clients.admin import Admin
from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.patience import until
from tests.support.tier.s3_server import S3Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
PARTITIONS = 6
SLOW_MACHINE_MS = 5000


@pytest.fixture
def fleet(both: tuple[PostgresServer, S3Server], tmp_path: Path) -> Iterator[FleetOfBrokers]:
    with some_brokers(tmp_path, both, (1, 2)) as brokers:
        yield brokers


def shown(fleet: FleetOfBrokers, node_id: int) -> dict[str, Any]:
    answer = Admin(fleet.running[node_id].facts["http"]).ask("GET", "/api/fleet")
    assert answer.status == 200, answer.content
    return dict(answer.content)


def test_each_node_shows_all_of_them(fleet: FleetOfBrokers) -> None:
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    admin.create_topics([NewTopic("t", PARTITIONS)])["t"].result(30)
    for node_id in (1, 2):
        until(lambda: is_even(shown(fleet, node_id), node_id), "the nodes are not even")  # noqa: B023
        for each in shown(fleet, node_id)["nodes"]:
            assert abs(each["clock_ahead_ms"]) < SLOW_MACHINE_MS
            assert each["bytes_per_second"] >= 0
    fleet.kill(2)
    until(lambda: [each["state"] for each in shown(fleet, 1)["nodes"]] == ["alive", "gone"])
    gone = shown(fleet, 1)["nodes"][1]
    assert gone["clock_ahead_ms"] is None
    until(lambda: shown(fleet, 1)["nodes"][0]["shards"] == 64, "it does not take all")
    assert shown(fleet, 1)["shards_without_owner"] == 0


def is_even(answer: dict[str, Any], node_id: int) -> bool:
    assert answer["node"] == node_id
    nodes = answer["nodes"]
    led = sum(each["partitions"] for each in nodes)
    known = all(each["clock_ahead_ms"] is not None for each in nodes)
    return known and [each["shards"] for each in nodes] == [32, 32] and led >= PARTITIONS
