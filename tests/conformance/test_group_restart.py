"""What groups have committed outlives the broker: kill -9, restart, and a real Kafka after us."""

from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import create_topic, start_node
from tests.conformance.test_group_clients import (
    PARTITIONS,
    QUICK,
    confluent,
    fresh,
    produce,
    read_one,
    share,
    until,
)
from tests.conformance.test_kill import free_address
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.worlds.broker_process import start_broker

NOT_YET = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
)


def committed(consumer: Consumer, topic: str) -> list[int]:
    """How far the group is; a coordinator that has just begun may want to be asked again."""
    wanted = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    found: list[int] = []

    def told() -> bool:
        try:
            found.extend(each.offset for each in consumer.committed(wanted, timeout=10))
        except KafkaException as error:
            if error.args[0].code() not in NOT_YET:
                raise
        return bool(found)

    until(told, "the coordinator answers")
    return found


def test_commits_and_members_outlive_kill_9(tmp_path: Path) -> None:
    address, data = free_address(), tmp_path / "data"
    node = start_node(data, QUICK, listen=address)
    try:
        topic = create_topic(AdminClient({"bootstrap.servers": address}), "t", PARTITIONS)
        produce(address, topic, 10)
        with closing(confluent(address, "g")) as reader:
            reader.subscribe([topic])
            read = {read_one(reader) for _ in range(15)}
            for round_ in range(2):
                reader.commit(asynchronous=False)
                before = committed(reader, topic)
                node.kill()
                node = start_node(data, QUICK, listen=address)
                assert committed(reader, topic) == before, round_
                read |= {read_one(reader) for _ in range(5)}
            until(share([reader]), "it is still the member that has all")
            assert len(read) == 25
    finally:
        node.kill()


@pytest.mark.kafka
@pytest.mark.skipif(not available(), reason="needs java and mvn")
def test_a_real_kafka_goes_on_with_our_groups_and_we_with_its(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    settings = {**QUICK, "offsets.topic.replication.factor": "1"}
    with start_kafka(directory, settings) as kafka:
        topic = create_topic(AdminClient({"bootstrap.servers": kafka.bootstrap}), "t", PARTITIONS)
        produce(kafka.bootstrap, topic, 5)
        first = advance(kafka.bootstrap, topic, [-1001] * PARTITIONS)
    with start_broker(directory, QUICK) as node:
        second = advance(node.bootstrap, topic, first)
    with start_kafka(directory, settings) as kafka:
        assert sum(advance(kafka.bootstrap, topic, second)) > sum(second) > sum(first)


def advance(bootstrap: str, topic: str, before: list[int]) -> list[int]:
    """The group has come as far as it should have; it reads on and commits: how far it is then."""
    with closing(confluent(bootstrap, fresh("look"), group_id="g")) as reader:
        assert committed(reader, topic) == before
        reader.subscribe([topic])
        for _ in range(6):
            partition, offset = read_one(reader)
            assert offset >= max(before[partition], 0)
        reader.commit(asynchronous=False)
        return committed(reader, topic)
