"""Consume-transform-produce, killed at random: every record comes out once under read_committed.

In turns the application and the broker are killed with -9 in the midst of transactions. How many
times is set by EXACTLY_ONCE_ROUNDS (4, and 2 with Java).
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import create_topic, start_node
from tests.conformance.test_kill import free_address
from tests.support.clients import java_programs
from tests.support.clients.java_programs import JavaProgram

EXERCISES = {
    "confluent-kafka, kafka-clients": (
        "copies exactly once from topic to topic; it and the broker are killed (-9)"
    )
}
ROUNDS = int(os.environ.get("EXACTLY_ONCE_ROUNDS", "4"))
JAVA_ROUNDS = int(os.environ.get("EXACTLY_ONCE_ROUNDS", "2"))
PARTITIONS = 3
RECORDS_A_ROUND = 1500
SEED = 11
pytestmark = pytest.mark.timeout(120 + 15 * ROUNDS)

Start = Callable[[str], subprocess.Popen[bytes]]


def confluent_application(address: str) -> subprocess.Popen[bytes]:
    arguments = [address, "in", "out", "group", "copier"]
    return subprocess.Popen([sys.executable, "-m", "tests.conformance.transformer", *arguments])


def fill(address: str, turn: int) -> None:
    """More to copy, so that the kill comes in the midst of it."""
    producer = Producer({"bootstrap.servers": address, "acks": "all"})
    for number in range(turn * RECORDS_A_ROUND, (turn + 1) * RECORDS_A_ROUND):
        producer.produce("in", f"{number:06d}", str(number), partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def committed(address: str) -> list[str]:
    """What a reader of committed records finds in the output, up to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition("out", index, 0) for index in range(PARTITIONS)])
    found, ended = [], 0
    while ended < PARTITIONS:
        message = consumer.poll(10)
        assert message is not None, "no end within 10 s"
        if message.error():
            ended += 1
        else:
            found.append((message.value() or b"").decode()[::-1])
    consumer.close()
    return found


def group_is_done(address: str, count: int) -> bool:
    """Whether the group has committed all of the input, and nothing of it is pending."""
    asking = Consumer({"bootstrap.servers": address, "group.id": "group"})
    try:
        places = [TopicPartition("in", index) for index in range(PARTITIONS)]
        return sum(max(each.offset, 0) for each in asking.committed(places, 30)) == count
    finally:
        asking.close()


def killed_at_random(data_dir: Path, start: Start, rounds: int) -> list[str]:
    """The committed output, after the input was copied through all the kills."""
    dice = random.Random(SEED)
    address = free_address()
    with ExitStack() as stack:
        node = stack.enter_context(start_node(data_dir, listen=address))
        admin = AdminClient({"bootstrap.servers": address})
        for topic in ("in", "out"):
            create_topic(admin, topic, PARTITIONS)
        application = start(address)
        stack.callback(ended, application)
        for turn in range(rounds):
            fill(address, turn)
            time.sleep(dice.uniform(0.1, 1.0))
            if turn % 2:
                node.kill()
                node = stack.enter_context(start_node(data_dir, listen=address))
            else:
                ended(application)
                application = start(address)
                stack.callback(ended, application)
        deadline = time.monotonic() + 90
        while not group_is_done(address, rounds * RECORDS_A_ROUND):
            assert time.monotonic() < deadline, "the input was not copied within 90 s"
            if application.poll() is not None:  # fenced by its time-out: a supervisor restarts it
                application = start(address)
                stack.callback(ended, application)
            time.sleep(0.5)
        ended(application)
        return committed(address)


def ended(application: subprocess.Popen[bytes]) -> None:
    application.kill()
    application.wait()


def each_once(rounds: int) -> list[str]:
    return [f"{number:06d}" for number in range(rounds * RECORDS_A_ROUND)]


def test_a_confluent_application_copies_each_record_once(tmp_path: Path) -> None:
    found = killed_at_random(tmp_path / "data", confluent_application, ROUNDS)
    assert sorted(found) == each_once(ROUNDS)


@pytest.mark.kafka
@pytest.mark.skipif(not java_programs.available(), reason="needs Java and Maven")
def test_a_java_application_copies_each_record_once(tmp_path: Path) -> None:
    program = JavaProgram("Transformer", java_programs.client_jars(), tmp_path / "classes")
    log = tmp_path / "application.log"
    found = killed_at_random(
        tmp_path / "data",
        lambda address: program.start(address, "in", "out", "group", "copier", log=log),
        JAVA_ROUNDS,
    )
    assert sorted(found) == each_once(JAVA_ROUNDS), log.read_text()
