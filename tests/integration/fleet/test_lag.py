"""The lag of a group in a fleet, as its coordinator shows it, whoever leads the partitions."""

from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker.cli.main import main
from protocol.apis.find_coordinator import FindCoordinatorRequest
from tests.support.clients.admin import Admin
from tests.support.clients.queue_member import asked
from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.patience import until
from tests.support.tier.s3_server import S3Server
from tests.support.worlds.node_process import NodeProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
PARTITIONS, RECORDS, GROUP = 6, 20, "readers"
SETTINGS = {"offsets.topic.num.partitions": "3"}


@pytest.fixture
def fleet(both: tuple[PostgresServer, S3Server], tmp_path: Path) -> Iterator[FleetOfBrokers]:
    with some_brokers(tmp_path, both, (1, 2), SETTINGS) as brokers:
        yield brokers


def coordinator(fleet: FleetOfBrokers) -> NodeProcess | None:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
    any_node = next(iter(fleet.running.values()))
    node_id = asked(any_node.bootstrap, request).coordinators[0].node_id
    return fleet.running.get(node_id)


def shown(fleet: FleetOfBrokers) -> dict[int, int]:
    """The lag by partition, at the group's coordinator."""
    node = coordinator(fleet)
    if node is None:
        return {}
    told = Admin(node.facts["http"]).ask("GET", f"/api/groups/{GROUP}")
    if told.status != HTTPStatus.OK:
        return {}
    answer = told.content
    assert answer["lag_records"] == sum(each["lag_records"] for each in answer["partitions"])
    return {each["partition"]: each["lag_records"] for each in answer["partitions"]}


def printed(
    fleet: FleetOfBrokers, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    node = coordinator(fleet)
    assert node is not None
    monkeypatch.setenv("HOROLOG_HTTP", node.facts["http"])
    capsys.readouterr()
    assert main(("groups", GROUP)) == 0
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("t-")]


def test_the_coordinator_shows_the_whole_lag(
    fleet: FleetOfBrokers, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    admin.create_topics([NewTopic("t", PARTITIONS)])["t"].result(30)
    writer = Producer({"bootstrap.servers": fleet.bootstrap})
    for number in range(RECORDS * PARTITIONS):
        writer.produce("t", b"x", partition=number % PARTITIONS)
    assert writer.flush(60) == 0
    reader = Consumer({"bootstrap.servers": fleet.bootstrap, "group.id": GROUP})
    committed = [TopicPartition("t", each, each) for each in range(PARTITIONS)]
    until(
        lambda: all(not each.error for each in reader.commit(offsets=committed, asynchronous=False))
    )
    reader.close()
    expected = {each: RECORDS - each for each in range(PARTITIONS)}
    until(lambda: shown(fleet) == expected, "the lag")
    assert len(printed(fleet, monkeypatch, capsys)) == PARTITIONS
    fleet.kill(2)
    until(lambda: shown(fleet) == expected, "after a take-over")
