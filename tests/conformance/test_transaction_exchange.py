"""Transactions move between a real Kafka and us as files: committed ones, aborted, left open.

After a kill; with TRANSACTIONS_THOROUGH=1 after an orderly stop, too.
"""

import os
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import create_topic
from tests.conformance.test_directory_exchange import replace_files
from tests.support.kafka.kafka_oracle import available, run_tool, start_kafka
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
ONE_PARTITION = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "log.initial.task.delay.ms": "86400000",
}
EXERCISES = {"Kafka's command-line tools": "transactions"}
ENDS = ["stopped", "killed"] if os.environ.get("TRANSACTIONS_THOROUGH") else ["killed"]
TOPICS = {"tx": 1, "__transaction_state": 1}


def producer_of(bootstrap: str, transactional_id: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 60_000,
            "log_level": 0,
        }
    )
    producer.init_transactions(60)
    return producer


def write(producer: Producer, *values: str) -> None:
    producer.begin_transaction()
    for value in values:
        producer.produce("tx", value, partition=0)
    assert producer.flush(30) == 0


def history(bootstrap: str) -> Producer:
    """Interwoven: committed, aborted, and one that is left open; that one's producer."""
    create_topic(AdminClient({"bootstrap.servers": bootstrap}), "tx", 1)
    one, other = producer_of(bootstrap, "one"), producer_of(bootstrap, "other")
    write(one, "a1", "a2")
    write(other, "lost1")
    one.commit_transaction(30)
    write(one, "lost2")
    other.abort_transaction(30)
    one.abort_transaction(30)
    write(other, "b1", "b2")
    other.commit_transaction(30)
    write(one, "c1")
    one.commit_transaction(30)
    left = producer_of(bootstrap, "left")
    write(left, "open1")
    write(other, "hidden")
    other.commit_transaction(30)
    return left


def committed(bootstrap: str) -> list[str]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition("tx", 0, 0)])
    found = []
    while True:
        message = consumer.poll(30)
        assert message is not None, "no end within 30 s"
        if message.error():
            consumer.close()
            return found
        found.append((message.value() or b"").decode())


VISIBLE = ["a1", "a2", "b1", "b2", "c1"]


def goes_on(bootstrap: str) -> None:
    """What was visible still is; the owner of the open transaction is replaced, all is well."""
    assert committed(bootstrap) == VISIBLE
    again = producer_of(bootstrap, "left")
    assert committed(bootstrap) == [*VISIBLE, "hidden"]
    write(again, "after")
    again.commit_transaction(30)
    assert committed(bootstrap) == [*VISIBLE, "hidden", "after"]


@pytest.mark.parametrize("end", ENDS)
def test_each_goes_on_with_the_others_transactions(tmp_path: Path, end: str) -> None:
    """First we on Kafka's directory; then Kafka there, with the partitions of ours in it."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for start, directory in ((start_kafka, theirs), (started, ours)):
        with start(directory) as node:
            left = history(node.bootstrap)
            assert committed(node.bootstrap) == VISIBLE
            if end == "killed":
                node.kill()
        del left
    with started(theirs) as node:
        goes_on(node.bootstrap)
    replace_files(ours, theirs, TOPICS)
    with start_kafka(theirs) as kafka:
        goes_on(kafka.bootstrap)


def started(directory: Path) -> NodeProcess:
    return start_broker(directory, ONE_PARTITION)


def test_kafkas_tool_lists_describes_and_aborts(tmp_path: Path) -> None:
    tool = "org.apache.kafka.tools.TransactionsCommand"
    with start_broker(tmp_path / "data", ONE_PARTITION) as node:
        left = history(node.bootstrap)

        def ask(*arguments: str) -> str:
            return run_tool(tool, "--bootstrap-server", node.bootstrap, *arguments)

        listed = ask("list")
        states = {line.split()[0]: line.split()[3] for line in listed.splitlines()[1:]}
        assert states == {
            "one": "CompleteCommit",
            "other": "CompleteCommit",
            "left": "Ongoing",
        }
        described = ask("describe", "--transactional-id", "left")
        assert "Ongoing" in described
        assert "tx-0" in described
        producers = ask("describe-producers", "--topic", "tx", "--partition", "0")
        starts = [line.split()[-1] for line in producers.splitlines()[1:]]
        assert sum(start != "None" for start in starts) == 1
        (start,) = (start for start in starts if start != "None")
        assert len(ask("find-hanging", "--broker-id", "1").splitlines()) == 1, "a heading alone"
        assert committed(node.bootstrap) == VISIBLE
        ask("abort", "--topic", "tx", "--partition", "0", "--start-offset", start)
        assert committed(node.bootstrap) == [*VISIBLE, "hidden"]
        del left
