"""Queues that move from one broker into a fleet, and out of it; nodes that log in to each other."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from protocol.apis.api_versions import ApiVersionsRequest
from tests.integration.fleet.test_export import command
from tests.integration.fleet.test_tokens import add_alice
from tests.integration.test_sasl import PASSWORD
from tests.support.clients.queue_member import REJECT, QueueMember, asked
from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.patience import until
from tests.support.ports import free_ports
from tests.support.tier.s3_server import S3Server
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
PARTITIONS, MANY, SHARE_FETCH = 4, 24, 78
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "8",
}
"""More partitions of states than nodes, so that each node has some of them."""
MECHANISM = "SCRAM-SHA-256"


@pytest.fixture
def fleet(both: tuple[PostgresServer, S3Server], tmp_path: Path) -> Iterator[FleetOfBrokers]:
    with some_brokers(tmp_path, both, ()) as brokers:
        yield brokers


def make(bootstrap: str, partitions: int = PARTITIONS) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("t", partitions)])["t"].result(30)


def fill(bootstrap: str) -> None:
    writer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for number in range(10 * PARTITIONS):
        writer.produce("t", b"%d" % number, partition=number % PARTITIONS)
    assert writer.flush(60) == 0


def all_taken(member: QueueMember, first: int) -> None:
    """Ten records more of each partition, and nothing of before."""
    assert sorted(member.join()) == list(range(PARTITIONS))
    for index in range(PARTITIONS):
        taken = member.take(index)
        offsets = [each for low, high, _ in taken for each in range(low, high + 1)]
        assert offsets == list(range(first, first + 10)), (index, taken)
    member.leave()


def test_a_queue_goes_on_in_a_fleet_and_out_of_it(fleet: FleetOfBrokers, tmp_path: Path) -> None:
    one, out = tmp_path / "one", tmp_path / "out"
    with start_broker(one, SETTINGS) as alone:
        make(alone.bootstrap)
        member = QueueMember(alone.bootstrap, "g", "t")
        member.begin_with_the_first()
        fill(alone.bootstrap)
        all_taken(member, 0)
    done = command(fleet, "import", one)
    assert done.returncode == 0, done.stderr
    nodes = [fleet.start(each, SETTINGS) for each in (1, 2)]
    fleet.wait_until_met()
    fill(nodes[0].bootstrap)
    all_taken(QueueMember(nodes[1].bootstrap, "g", "t"), 10)
    fleet.kill(1)  # the leaders' epochs rise, and no record is written with them
    all_taken_of_nothing(QueueMember(nodes[1].bootstrap, "g", "t"))
    fleet.stop(2)
    done = command(fleet, "export", out)
    assert done.returncode == 0, done.stderr
    with start_broker(out, SETTINGS) as alone:
        fill(alone.bootstrap)
        all_taken(QueueMember(alone.bootstrap, "g", "t"), 20)


def all_taken_of_nothing(member: QueueMember) -> None:
    """The next leaders read the states."""
    member.join()
    for index in range(PARTITIONS):
        assert member.take(index) == []
    member.leave()


def secured(
    fleet: FleetOfBrokers, node_id: int, tmp_path: Path, *, knows: bool, **settings: str
) -> NodeProcess:
    """A node that others reach by a log-in alone; clients come in the clear."""
    plain, sasl = free_ports(2)
    properties = tmp_path / "fleet.properties"
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    properties.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={MECHANISM}\n"
        f'sasl.jaas.config={login} username="alice" password="{PASSWORD}";\n'
    )
    properties.chmod(0o600)
    client = {"horolog.fleet.client.config": str(properties)} if knows else {}
    return fleet.start(node_id, {
        **SETTINGS, **client, **{name.replace("_", "."): each for name, each in settings.items()},
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl}",
        "sasl.enabled.mechanisms": MECHANISM,
        "horolog.fleet.listener": "SASL_PLAINTEXT",
    })  # fmt: skip


def test_nodes_log_in_to_each_other(fleet: FleetOfBrokers, tmp_path: Path) -> None:
    nodes = [secured(fleet, each, tmp_path, knows=True) for each in (1, 2)]
    plain = [each.bootstrap for each in nodes]
    add_alice(Plain(plain[0]))
    make(plain[0])
    member = QueueMember(plain[0], "g", "t")
    member.begin_with_the_first()
    fill(plain[0])
    all_taken(member, 0)


def test_nodes_need_the_right_to_act_for_the_cluster(fleet: FleetOfBrokers, tmp_path: Path) -> None:
    """Until then members read what the group's coordinator remembers by itself."""
    rights = {
        "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super_users": "User:ANONYMOUS",
    }
    nodes = [secured(fleet, each, tmp_path, knows=True, **rights) for each in (1, 2)]
    fleet.wait_until_even()  # a next coordinator would remember the other half
    plain = [each.bootstrap for each in nodes]
    add_alice(Plain(plain[0]))
    make(plain[0], MANY)
    member = QueueMember(plain[0], "g", "t")
    member.begin_with_the_first()
    member.join()
    until(lambda: "CLUSTER_AUTHORIZATION_FAILED" in logged(tmp_path), "no node was refused")
    assert len(member.join()) < MANY
    right = AclBinding(
        ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL, "User:alice", "*",
        AclOperation.CLUSTER_ACTION, AclPermissionType.ALLOW,
    )  # fmt: skip
    admin = AdminClient({"bootstrap.servers": plain[0]})
    admin.create_acls([right])[right].result(30)
    until(lambda: len(member.join()) == MANY, "the member gets no more partitions")


def logged(tmp_path: Path) -> str:
    return "".join(each.read_text() for each in tmp_path.glob("node-*.log"))


def test_nodes_without_a_way_to_each_other_serve_no_queues(
    fleet: FleetOfBrokers, tmp_path: Path
) -> None:
    node = secured(fleet, 1, tmp_path, knows=False)
    keys = {each.api_key for each in asked(node.bootstrap, ApiVersionsRequest()).api_keys}
    assert SHARE_FETCH not in keys


def test_letters_go_to_whoever_leads_their_topic(fleet: FleetOfBrokers) -> None:
    nodes = [fleet.start(each, SETTINGS) for each in (1, 2)]
    fleet.wait_until_met()
    make(nodes[0].bootstrap)
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    letters = NewTopic("dlq.t", 1, config={"errors.deadletterqueue.group.enable": "true"})
    admin.create_topics([letters])["dlq.t"].result(30)
    member = QueueMember(nodes[0].bootstrap, "g", "t")
    member.begin_with_the_first(errors_deadletterqueue_topic_name="dlq.t")
    fill(nodes[0].bootstrap)
    member.join()
    for index in range(PARTITIONS):
        assert sum(last - first + 1 for first, last, _ in member.take(index, REJECT)) == 10
    found = places_of_letters(fleet.bootstrap, 10 * PARTITIONS)
    assert found == {(index, offset) for index in range(PARTITIONS) for offset in range(10)}


def places_of_letters(bootstrap: str, count: int) -> set[tuple[int, int]]:
    """Partitions and offsets of the records that so many letters are of."""
    reader = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "judge", "auto.offset.reset": "earliest",
    })  # fmt: skip
    reader.assign([TopicPartition("dlq.t", 0, 0)])
    found: list[tuple[int, int]] = []
    while len(found) < count:
        message = reader.poll(30)
        assert message is not None, f"{len(found)} letters"
        told = dict(message.headers() or [])
        names = ("__dlq.errors.partition", "__dlq.errors.offset")
        index, offset = (int(told[name] or b"") for name in names)
        found.append((index, offset))
    reader.close()
    return set(found)


class Plain:
    """A node as its administrator reaches it."""

    def __init__(self, plain: str) -> None:
        self.plain = plain
