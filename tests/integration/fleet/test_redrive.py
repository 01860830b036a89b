"""Dead letters sent back in a fleet: letters, their records and where these go back to are led by
any of the nodes; the nodes are killed meanwhile.
"""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from pipeline.broker_client import BrokerClient
from protocol.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.apis.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.support.clients.admin import Admin, Answered
from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.patience import until
from tests.support.tier.s3_server import S3Server
from tests.support.worlds.handler_world import altered

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]
PARTITIONS, A_PARTITION = 6, 40
OLD_MS = 1_700_000_000_000
GROUP, GROUP_KIND, SET = "g", 32, 0
TOKEN = "a-token-of-some-length"
PATH = f"/api/share-groups/{GROUP}/redrive"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
PATIENCE = 150.0


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    return {"offsets.topic.num.partitions": "6", "horolog.http.token.file": str(file)}


@pytest.fixture
def fleet(
    both: tuple[PostgresServer, S3Server], tmp_path: Path, settings: dict[str, str]
) -> Iterator[FleetOfBrokers]:
    with some_brokers(tmp_path / "nodes", both, (1, 2, 3), settings) as brokers:
        make_topics(brokers)
        until(lambda: len(set(leaders(brokers, "t").values())) == 3, "some node leads nothing")
        yield brokers


def make_topics(fleet: FleetOfBrokers) -> None:
    enabled = CreatableTopicConfig(name="errors.deadletterqueue.group.enable", value="true")
    for_ever = CreatableTopicConfig(name="retention.ms", value="-1")  # records are old
    named = [("errors.deadletterqueue.topic.name", SET, "dlq.t")]
    with BrokerClient(fleet.running[1].bootstrap) as client:
        topics = [
            CreatableTopic(
                name="t", num_partitions=PARTITIONS, replication_factor=1, configs=[for_ever]
            ),
            CreatableTopic(
                name="dlq.t", num_partitions=PARTITIONS, replication_factor=1, configs=[enabled]
            ),
        ]
        made = client.call(CreateTopicsRequest(topics=topics, timeout_ms=30_000))
        assert [each.error_code for each in made.topics] == [0, 0], made
        request = IncrementalAlterConfigsRequest(resources=[altered(GROUP_KIND, GROUP, named)])
        assert client.call(request).responses[0].error_code == 0


def leaders(fleet: FleetOfBrokers, topic: str) -> dict[int, int]:
    """Nodes by partition. No group's coordinator is asked for: the first redrive does that."""
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    found = admin.list_topics(topic, timeout=10).topics[topic].partitions
    return {index: each.leader for index, each in found.items() if each.leader >= 0}


def fill(fleet: FleetOfBrokers) -> None:
    """Records, and a letter of each: of some a copy, of some not, in all partitions."""
    producer = Producer({"bootstrap.servers": fleet.bootstrap, "enable.idempotence": True})
    for index in range(PARTITIONS):
        for offset in range(A_PARTITION):
            value, at = f"{index}-{offset}", OLD_MS + offset
            producer.produce("t", value, "key", partition=index, timestamp=at)
    assert producer.flush(60) == 0
    for offset in range(A_PARTITION):
        for index in range(PARTITIONS):
            is_copy = offset % 2 == 0
            letter = {
                "__dlq.errors.topic": "t",
                "__dlq.errors.partition": str(index),
                "__dlq.errors.offset": str(offset),
                "__dlq.errors.group": GROUP,
                "horolog.dlq.reason": "rejected",
                "horolog.dlq.record.time": str(OLD_MS + offset),
            }
            producer.produce(
                "dlq.t",
                f"{index}-{offset}" if is_copy else None,
                "key" if is_copy else None,
                partition=(index + offset) % PARTITIONS,
                headers=list(letter.items()),
            )
    assert producer.flush(60) == 0


def records(fleet: FleetOfBrokers) -> list[tuple[int, int, int, str]]:
    """Partition, offset, time and value of what is in `t`."""
    reader = Consumer({
        "bootstrap.servers": fleet.bootstrap, "group.id": "judge", "enable.partition.eof": True,
        "reconnect.backoff.max.ms": 300,
    })  # fmt: skip
    reader.assign([TopicPartition("t", index, 0) for index in range(PARTITIONS)])
    found, ended = list[tuple[int, int, int, str]](), set[int]()
    while len(ended) < PARTITIONS:
        message = reader.poll(30)
        assert message is not None, f"no end of partitions but {ended} within 30 s"
        index, offset = message.partition(), message.offset()
        if message.error() is not None:
            if index is not None:
                ended.add(index)
            continue
        assert index is not None
        assert offset is not None
        at, value = message.timestamp()[1], (message.value() or b"").decode()
        found.append((index, offset, at, value))
    reader.close()
    return found


def asked(fleet: FleetOfBrokers, method: str, query: str = "") -> dict[str, Any] | None:
    """The answer of the node that may; None while there is none, or it just went."""
    for node in list(fleet.running.values()):
        with suppress(OSError, AssertionError, json.JSONDecodeError):
            answer = Admin(node.facts["http"]).ask(method, PATH + query, HEADERS)
            if answer.status == 200:
                return dict(answer.content)
    return None


def answers_of(fleet: FleetOfBrokers) -> dict[int, Answered]:
    """The answer of each node."""
    return {
        node: Admin(running.facts["http"]).ask("GET", PATH, HEADERS)
        for node, running in fleet.running.items()
    }


def check_others_name(fleet: FleetOfBrokers) -> None:
    """Nodes that do not remember the redrive say which one does."""
    answers = answers_of(fleet)
    (knows,) = [node for node, answer in answers.items() if answer.status == 200]
    for node, answer in answers.items():
        if node != knows:
            assert (answer.status, answer.code) == (409, "other_node")
            assert f"Node {knows} coordinates" in answer.content["error"]["message"]


def check_each_is_back_once(fleet: FleetOfBrokers) -> None:
    found = records(fleet)
    back = Counter(
        (index, at, value) for index, offset, at, value in found if offset >= A_PARTITION
    )
    wanted = {
        (index, OLD_MS + offset, f"{index}-{offset}")
        for index in range(PARTITIONS)
        for offset in range(A_PARTITION)
    }
    assert back == Counter(wanted)


def test_letters_go_back_whichever_nodes_lead_them_and_their_records(
    fleet: FleetOfBrokers,
) -> None:
    fill(fleet)
    until(lambda: asked(fleet, "GET") is not None, lambda: f"no node knows: {answers_of(fleet)}")
    check_others_name(fleet)
    seen = asked(fleet, "GET")
    assert seen is not None
    assert seen["left"] == PARTITIONS * A_PARTITION
    assert len({each["is_led_here"] for each in seen["partitions"]}) == 2
    answer = asked(fleet, "POST")
    assert answer is not None
    assert (answer["stopped"], answer["left"]) == (None, 0), answer
    assert (answer["sent"], answer["passed_over"]) == (PARTITIONS * A_PARTITION, {})
    again = asked(fleet, "POST")
    assert again is not None
    assert again["sent"] == 0
    check_each_is_back_once(fleet)


def test_each_goes_back_once_while_nodes_are_killed(
    fleet: FleetOfBrokers, settings: dict[str, str]
) -> None:
    """Any of the nodes: the one that remembers, those of letters, of records, or all at once."""
    fill(fleet)
    dice, is_over = random.Random(11), threading.Event()

    def send() -> None:
        while not is_over.is_set():
            answer = asked(fleet, "POST", "?limit=7&seconds=5")
            if answer is not None and answer["left"] == 0 and answer["stopped"] is None:
                is_over.set()
            elif answer is None:
                time.sleep(0.2)

    sending = threading.Thread(target=send)
    sending.start()
    try:
        for _ in range(6):
            time.sleep(dice.uniform(0.3, 2.0))
            victim = dice.choice(sorted(fleet.running))
            fleet.kill(victim)
            time.sleep(dice.uniform(0.0, 2.0))
            fleet.start(victim, settings)
        assert is_over.wait(PATIENCE), asked(fleet, "GET")
    finally:
        is_over.set()
        sending.join()
    check_each_is_back_once(fleet)
