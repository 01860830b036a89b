"""A Kafka Streams application with `exactly_once_v2` and windowed state, killed and restarted.

Application and broker are killed with -9 in turns; what the application has counted in the end
equals the plain computation. STREAMS_ROUNDS (2) says how many kills there are.
"""

import os
import random
import subprocess
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import create_topic, start_node
from tests.conformance.test_kill import free_address
from tests.support.clients import java_programs
from tests.support.clients.java_programs import JavaProgram

EXERCISES = {"Kafka Streams": "windowed counts, exactly once; it and the broker are killed (-9)"}
ROUNDS = int(os.environ.get("STREAMS_ROUNDS", "2"))
PARTITIONS = 2
RECORDS_A_ROUND = 1000
KEYS = 7
WINDOW_MS = 10_000
BEGIN_MS = 1_700_000_000_000
SEED = 5
pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(180 + 30 * ROUNDS),
    pytest.mark.skipif(not java_programs.available(), reason="needs Java and Maven"),
]


def fill(address: str, dice: random.Random, counts: Counter[str]) -> None:
    """More to count, over a few windows; notes what the counts must come to."""
    producer = Producer({"bootstrap.servers": address, "acks": "all"})
    for _ in range(RECORDS_A_ROUND):
        key, at = f"k{dice.randrange(KEYS)}", BEGIN_MS + dice.randrange(6 * WINDOW_MS)
        producer.produce("words", b"word", key, timestamp=at)
        counts[f"{key}@{at - at % WINDOW_MS}"] += 1
    assert producer.flush(30) == 0


def counted(address: str) -> dict[str, int]:
    """The last count of every key and window that was committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition("counts", index, 0) for index in range(PARTITIONS)])
    found, ended = {}, 0
    while ended < PARTITIONS:
        message = consumer.poll(10)
        assert message is not None, "no end within 10 s"
        if message.error():
            ended += 1
        else:
            found[(message.key() or b"").decode()] = int(message.value() or b"0")
    consumer.close()
    return found


def test_windows_are_counted_exactly_once(tmp_path: Path) -> None:
    program = JavaProgram("WindowedCounts", java_programs.streams_jars(), tmp_path / "classes")
    dice, counts, log = random.Random(SEED), Counter[str](), tmp_path / "application.log"
    address, data_dir = free_address(), tmp_path / "data"
    begin = [address, "words", "counts", str(tmp_path / "state")]
    with ExitStack() as stack:
        node = stack.enter_context(start_node(data_dir, listen=address))
        admin = AdminClient({"bootstrap.servers": address})
        for topic in ("words", "counts"):
            create_topic(admin, topic, PARTITIONS)
        fill(address, dice, counts)
        application = program.start(*begin, log=log)
        stack.callback(ended, application)
        _wait(lambda: bool(counted(address)), log)
        for turn in range(ROUNDS):
            fill(address, dice, counts)
            time.sleep(dice.uniform(0.2, 1.0))
            if turn % 2:
                node.kill()
                node = stack.enter_context(start_node(data_dir, listen=address))
            else:
                ended(application)
                application = program.start(*begin, log=log)
                stack.callback(ended, application)
        _wait(lambda: counted(address) == counts, log)


def ended(application: subprocess.Popen[bytes]) -> None:
    application.kill()
    application.wait()


def _wait(true: object, log: Path) -> None:
    assert callable(true)
    deadline = time.monotonic() + 90
    while not true():
        assert time.monotonic() < deadline, f"not within 90 s: {log.read_text()[-4000:]}"
        time.sleep(0.5)
