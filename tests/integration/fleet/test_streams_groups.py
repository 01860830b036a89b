"""A Kafka Streams application of the new protocol on a fleet, whose coordinator is killed."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import create_topic
from tests.conformance.test_streams import PARTITIONS, _wait, counted, ended
from tests.conformance.test_streams_groups import GROUP, INTERNAL, SEED, SHORT_TIMES, fill
from tests.support.clients import java_programs
from tests.support.clients.java_programs import JavaProgram
from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.tier.s3_server import S3Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not java_programs.available(), reason="needs Java and Maven"),
]
NODES = (1, 2, 3)
SETTINGS = {
    **SHORT_TIMES,
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
}


@pytest.fixture
def fleet(both: tuple[PostgresServer, S3Server], tmp_path: Path) -> Iterator[FleetOfBrokers]:
    with some_brokers(tmp_path, both, NODES, SETTINGS) as brokers:
        yield brokers


def coordinator_of(address: str) -> int:
    groups = AdminClient({"bootstrap.servers": address})
    described = groups.describe_consumer_groups([GROUP], request_timeout=30)[GROUP]
    node_id = described.result(30).coordinator.id
    assert isinstance(node_id, int)
    return node_id


def test_words_are_counted_exactly_once_whoever_coordinates(
    fleet: FleetOfBrokers, tmp_path: Path
) -> None:
    program = JavaProgram("WordCounts", java_programs.streams_jars(), tmp_path / "classes")
    dice, counts, log = random.Random(SEED), Counter[str](), tmp_path / "application.log"
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    for topic in ("lines", "counts"):
        create_topic(admin, topic, PARTITIONS)
    fill(fleet.bootstrap, dice, counts)
    with ExitStack() as stack:
        application = program.start(
            fleet.bootstrap, "lines", "counts", str(tmp_path / "state"), log=log
        )
        stack.callback(ended, application)
        _wait(lambda: bool(counted(fleet.bootstrap)), log)
        fill(fleet.bootstrap, dice, counts)
        fleet.kill(coordinator_of(fleet.bootstrap))
        fill(fleet.bootstrap, dice, counts)
        _wait(lambda: counted(fleet.bootstrap) == counts, log)
        assert admin.list_topics().topics.keys() >= INTERNAL
