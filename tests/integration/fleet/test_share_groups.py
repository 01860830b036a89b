"""Share groups on a fleet: the leader of a partition, the share coordinator and the group's own
coordinator are killed one after another.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
from confluent_kafka import Producer

from broker.share.state.key import ShareKey
from pipeline.broker_client import BrokerClient
from pipeline.errors import BrokerRefused
from protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.apis.describe_share_group_offsets import (
    DescribeShareGroupOffsetsGroup,
    DescribeShareGroupOffsetsRequest,
)
from protocol.apis.find_coordinator import FindCoordinatorRequest
from protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from tests.conformance.test_share_group_tool import told
from tests.support.clients import java_programs
from tests.support.clients.java_programs import JavaProgram
from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.patience import until
from tests.support.tier.s3_server import S3Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not java_programs.available(), reason="needs java, javac and mvn"),
]
NODES = (1, 2, 3)
TOPIC, GROUP, PARTITIONS = "jobs", "workers", 6
ROUND, BATCH = 300, 10
PATIENCE_SECONDS = 120
GROUP_KIND, SHARE_KIND, GROUP_RESOURCE = 0, 2, 32
SETTINGS = {
    "offsets.topic.num.partitions": "6",
    "share.coordinator.state.topic.num.partitions": "6",
    "group.share.record.lock.duration.ms": "3000",
    "group.share.min.record.lock.duration.ms": "1000",
    "share.coordinator.snapshot.update.records.per.snapshot": "10",
    "share.coordinator.state.topic.prune.interval.ms": "500",
}
"""Also so that state is snapshot and pruned all the time."""


@pytest.fixture
def fleet(both: tuple[PostgresServer, S3Server], tmp_path: Path) -> Iterator[FleetOfBrokers]:
    with some_brokers(tmp_path, both, NODES, SETTINGS) as brokers:
        yield brokers


def asked(fleet: FleetOfBrokers, request: Any, node_id: int | None = None) -> Any:
    """The answer of a node, of whichever unless it is named."""
    node = fleet.running[node_id or min(fleet.running)]
    with BrokerClient(node.bootstrap) as client:
        return client.call(request)


def begin(fleet: FleetOfBrokers) -> None:
    """A topic, and a group that reads it from its first record on."""
    topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
    made = asked(fleet, CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
    assert made.topics[0].error_code == 0, made
    setting = AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
    resource = AlterConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name=GROUP, configs=[setting]
    )
    set_ = asked(fleet, IncrementalAlterConfigsRequest(resources=[resource]))
    assert set_.responses[0].error_code == 0, set_


def fill(fleet: FleetOfBrokers, first: int) -> None:
    """More records, so many in each partition."""
    producer = Producer(
        {
            "bootstrap.servers": fleet.bootstrap,
            "enable.idempotence": True,
            "batch.num.messages": BATCH,
        }
    )
    for number in range(first, first + ROUND):
        for partition in range(PARTITIONS):
            producer.produce(TOPIC, str(number), partition=partition)
        producer.poll(0)
    assert producer.flush(60) == 0


def coordinator_of(fleet: FleetOfBrokers, kind: int, key: str) -> int:
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
    found = asked(fleet, request).coordinators[0]
    assert found.error_code == 0, found
    node_id = found.node_id
    assert isinstance(node_id, int)
    return node_id


def topic_facts(fleet: FleetOfBrokers) -> Any:
    topic = MetadataRequestTopic(name=TOPIC)
    return asked(fleet, MetadataRequest(topics=[topic])).topics[0]


def leader_of(fleet: FleetOfBrokers, index: int) -> int:
    found = {each.partition_index: each.leader_id for each in topic_facts(fleet).partitions}
    node_id = found[index]
    assert isinstance(node_id, int)
    return node_id


def lags(fleet: FleetOfBrokers) -> dict[int, int] | None:
    """By partition, as the group's coordinator says; None while there is none."""
    request = DescribeShareGroupOffsetsRequest(
        groups=[DescribeShareGroupOffsetsGroup(group_id=GROUP, topics=None)]
    )
    try:
        node_id = coordinator_of(fleet, GROUP_KIND, GROUP)
        group = asked(fleet, request, node_id).groups[0]
    except (BrokerRefused, KeyError):
        return None
    if group.error_code or not group.topics:
        return None
    return {each.partition_index: each.lag for each in group.topics[0].partitions}


def heard(logs: list[Path], word: str) -> Counter[str]:
    """Places of records in the lines that begin with a word."""
    found: Counter[str] = Counter()
    for log in logs:
        for line in log.read_text().splitlines() if log.exists() else ():
            if line.startswith(f"{word} "):
                found.update(each.split("x")[0] for each in line.split() if ":" in each)
    return found


def all_read(fleet: FleetOfBrokers, logs: list[Path], rounds: int) -> Callable[[], bool]:
    def is_so() -> bool:
        if len(heard(logs, "got")) < rounds * ROUND * PARTITIONS:
            return False
        return lags(fleet) == dict.fromkeys(range(PARTITIONS), 0)

    return is_so


def test_every_record_is_finished_once_whoever_is_killed(
    fleet: FleetOfBrokers, tmp_path: Path
) -> None:
    program = JavaProgram("QueueWorker", java_programs.client_jars(), tmp_path / "classes")
    begin(fleet)
    logs = [tmp_path / "first.log", tmp_path / "second.log"]
    victims: list[Callable[[], int]] = [
        lambda: leader_of(fleet, 0),
        lambda: coordinator_of(fleet, SHARE_KIND, state_key(fleet)),
        lambda: coordinator_of(fleet, GROUP_KIND, GROUP),
    ]
    fill(fleet, 0)
    with ExitStack() as stack:
        for log in logs:
            worker = program.start(fleet.bootstrap, TOPIC, GROUP, log=log)
            stack.callback(ended, worker)
        until(all_read(fleet, logs, 1), "the first records", seconds=PATIENCE_SECONDS)
        for number, victim in enumerate(victims, 1):
            fill(fleet, number * ROUND)
            until(
                lambda: len(heard(logs, "got")) > (number * ROUND + 50) * PARTITIONS,  # noqa: B023
                "some records", seconds=PATIENCE_SECONDS,
            )  # fmt: skip
            gone = victim()
            fleet.kill(gone)
            until(all_read(fleet, logs, number + 1), "the next records", seconds=PATIENCE_SECONDS)
            fleet.start(gone, SETTINGS)
            fleet.wait_until_met()
    done = heard(logs, "done")
    twice = [place for place, count in done.items() if count > 1]
    assert not twice, twice
    unclear = heard(logs, "got").keys() - done.keys()
    assert len(unclear) < ROUND, "answers were lost with a node, and with no other"


def ended(worker: Popen[bytes]) -> None:
    worker.kill()
    worker.wait()


def state_key(fleet: FleetOfBrokers) -> str:
    return ShareKey(GROUP, topic_facts(fleet).topic_id, 1).owner


def test_the_tools_of_kafka_work_through_any_node(fleet: FleetOfBrokers) -> None:
    begin(fleet)
    fill(fleet, 0)
    nodes = [each.bootstrap for each in fleet.running.values()]
    of_topic = ("--group", GROUP, "--topic", TOPIC)
    for number, bootstrap in enumerate(nodes):
        way = ("--to-earliest", "--to-latest", "--to-earliest")[number]
        status, out, errors = told(bootstrap, "--reset-offsets", *of_topic, way, "--execute")
        assert status == 0, (out, errors)
        behind = 0 if way == "--to-latest" else ROUND
        for other in nodes:
            status, out, errors = told(other, "--describe", "--group", GROUP)
            assert status == 0, (out, errors)
            rows = [out[at : at + 5] for at, word in enumerate(out) if word == GROUP]
            assert sorted(rows) == [
                [GROUP, TOPIC, str(index), str(ROUND - behind), str(behind)]
                for index in range(PARTITIONS)
            ]
    assert told(nodes[1], "--list")[1] == [GROUP]
    status, out, errors = told(nodes[1], "--delete-offsets", *of_topic)
    assert status == 0, (out, errors)
    assert lags(fleet) is None
    status, out, errors = told(nodes[2], "--delete", "--group", GROUP)
    assert status == 0, (out, errors)
    assert told(nodes[0], "--list")[1] == []
