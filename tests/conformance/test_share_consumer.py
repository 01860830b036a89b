"""KafkaShareConsumer of Kafka 4.3, at a real Kafka 4.3 and here: the same program hears the same.

Locks last two seconds on both sides.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import create_topic
from tests.support.clients import java_programs
from tests.support.clients.java_programs import JavaProgram
from tests.support.kafka.kafka_oracle import start_kafka
from tests.support.patience import until
from tests.support.worlds.broker_process import start_broker

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not java_programs.available(), reason="needs java, javac and mvn"),
]
COMMON = {
    "group.share.record.lock.duration.ms": "2000",
    "group.share.min.record.lock.duration.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
KAFKA = COMMON | {
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
HEARD = {
    "implicit": ["got 0x1 1x1 2x1 3x1 4x1 5x1", "closed"],
    "explicit": [
        "got 0x1 1x1 2x1 3x1 4x1 5x1", "commit ok", "got 1x2 3x2", "commit ok", "closed",
    ],
    "limit": [
        "got 0x1 1x1", "commit ok", "got 1x2 2x1", "commit ok", "got 3x1 4x1", "commit ok",
        "got 3x2 5x1", "commit ok", "closed",
    ],
    "late": [
        "got 0x1 1x1 2x1 3x1 4x1 5x1", "commit InvalidRecordStateException",
        "got 0x2 1x2 2x2 3x2 4x2 5x2", "commit InvalidRecordStateException",
        "got 0x3 1x3 2x3 3x3 4x3 5x3", "commit InvalidRecordStateException",
        "got 0x4 1x4 2x4", "commit ok", "got 1x5", "commit ok",
        "got 3x4 4x4 5x4", "commit ok", "got 4x5", "commit ok", "closed",
    ],
    "renew": ["got 0x1 1x1 2x1 3x1 4x1 5x1", "commit ok"] * 4 + ["got", "closed"],
}  # fmt: skip
HEARD_HERE = {
    "backoff": [
        "got 0x1 1x1 2x1 3x1 4x1 5x1", "commit ok", "got 0x2 1x2 2x2 3x2 4x2 5x2", "commit ok",
        "got 0x3 1x3 2x3 3x3 4x3 5x3", "commit ok", "closed",
    ],
    "time": ["got 0x1 2x1 4x1", "commit ok", "got 1x1 3x1 5x1", "commit ok", "closed"],
    "header": ["got 0x1 2x1 4x1", "commit ok", "got 1x1 3x1 5x1", "commit ok", "closed"],
}  # fmt: skip
"""With settings that Kafka does not have."""
SETTINGS = {
    "backoff": ("horolog.share.retry.backoff.ms=500",),
    "time": ("horolog.share.delay=record-time",),
    "header": ("horolog.share.delay=header",),
    "letters": (
        "errors.deadletterqueue.topic.name=dlq.explicit",
        "errors.deadletterqueue.copy.record.enable=true",
    ),
}
LATER_MS = 15_000
"""Until every other record is due: a reader that begins to read takes less."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> JavaProgram:
    classes = tmp_path_factory.mktemp("share-classes")
    return JavaProgram("ShareReader", java_programs.client_jars(), classes)


@pytest.fixture(scope="module", params=["kafka", "horolog"])
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    with ExitStack() as stack:
        data_dir = tmp_path_factory.mktemp(f"share-{request.param}") / "data"
        if request.param == "kafka":
            node = stack.enter_context(start_kafka(data_dir, KAFKA))
        else:
            node = stack.enter_context(start_broker(data_dir, COMMON))
        yield node.bootstrap


@pytest.mark.parametrize("way", HEARD)
def test_a_share_consumer_hears_what_it_hears_of_kafka(
    way: str, bootstrap: str, program: JavaProgram, tmp_path: Path
) -> None:
    assert heard(way, bootstrap, program, tmp_path / "reader.log") == HEARD[way]


@pytest.mark.parametrize("way", HEARD_HERE)
def test_a_share_consumer_of_a_group_with_settings_of_horolog(
    way: str, program: JavaProgram, tmp_path: Path
) -> None:
    with start_broker(tmp_path / "data", COMMON) as node:
        found = heard(way, node.bootstrap, program, tmp_path / "reader.log")
    assert found == HEARD_HERE[way]


def heard(topic: str, bootstrap: str, program: JavaProgram, log: Path, way: str = "") -> list[str]:
    """The lines of a reader of six records; the topic has the name of its way, unless given."""
    way = way or topic
    create_topic(AdminClient({"bootstrap.servers": bootstrap}), topic, 1)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 100})
    now = int(time.time() * 1000)
    for number in range(6):
        due = now + LATER_MS * (number % 2)
        producer.produce(
            topic,
            str(number),
            timestamp=due if way == "time" else now,
            headers={"horolog-deliver-at": str(due)} if way == "header" else {},
        )
    producer.flush()
    settings = SETTINGS.get(topic, ())
    process = program.start(bootstrap, topic, f"{topic}-group", way, *settings, log=log)
    assert process.wait(120) == 0, log.read_text()
    return [line for line in log.read_text().splitlines() if line[:1] != "["]


def test_letters_of_what_a_share_consumer_rejects(program: JavaProgram, tmp_path: Path) -> None:
    """The reader of "explicit" rejects offset 5; consumers read its letter as any record."""
    with start_broker(tmp_path / "data", COMMON) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        create_topic(admin, "dlq.explicit", errors_deadletterqueue_group_enable="true")
        found = heard("letters", node.bootstrap, program, tmp_path / "reader.log", "explicit")
        consumer = Consumer(
            {
                "bootstrap.servers": node.bootstrap,
                "group.id": "letters-reader",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["dlq.explicit"])
        came: list[Any] = []
        until(lambda: came.extend(consumer.consume(1, 1.0)) or came, "no letter")
        consumer.close()
    assert found == HEARD["explicit"]
    (letter,) = came
    headers = dict(letter.headers())
    assert letter.value() == b"5"
    assert headers["__dlq.errors.topic"] == b"letters"
    assert headers["__dlq.errors.offset"] == b"5"
    assert headers["horolog.dlq.reason"] == b"rejected"
