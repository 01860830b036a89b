"""librdkafka's share consumer (2.16), at a real Kafka 4.3 and here: the same program hears the
same. And here alone: a worker goes on while its broker is killed (-9).
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, KafkaException, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import create_topic
from tests.conformance.test_share_consumer import COMMON, KAFKA
from tests.conformance.test_streams_groups import quiet_address
from tests.support.clients.queue_member import QueueMember
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.worlds.broker_process import start_broker

EXERCISES = {
    "confluent-kafka": "share groups: accepts, releases, rejects, shares with others, and the "
    "broker is killed (-9)"
}
pytestmark = [pytest.mark.timeout(240)]
with_kafka = pytest.mark.skipif(not available(), reason="needs java and mvn")
RECORDS, PATIENCE_SECONDS = 10, 60.0
QUIET_SECONDS = 4.0
"""Longer than locks are held, 2 s: what was left would have come again."""


@pytest.fixture(scope="module", params=[pytest.param("kafka", marks=with_kafka), "horolog"])
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    with ExitStack() as stack:
        data_dir = tmp_path_factory.mktemp(f"rdkafka-{request.param}") / "data"
        if request.param == "kafka":
            node = stack.enter_context(start_kafka(data_dir, KAFKA))
        else:
            node = stack.enter_context(start_broker(data_dir, COMMON))
        yield node.bootstrap


def queue(bootstrap: str, topic: str, count: int) -> None:
    """A topic with numbers, and a group of its name that reads it from the first on."""
    create_topic(AdminClient({"bootstrap.servers": bootstrap}), topic, 1)
    QueueMember(bootstrap, topic, topic).begin_with_the_first()
    fill(bootstrap, topic, 0, count)


def fill(bootstrap: str, topic: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(first, first + count):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(60) == 0


def member(bootstrap: str, topic: str, **settings: Any) -> ShareConsumer:
    """Reads the queue of this name."""
    made = ShareConsumer({
        "bootstrap.servers": bootstrap, "group.id": topic, "log_level": 0,
        "reconnect.backoff.max.ms": 500, **settings,
    })  # fmt: skip
    made.subscribe([topic])
    return made


def polled(consumer: ShareConsumer, seconds: float = 1.0) -> list[tuple[int, int, Any]]:
    """Number, deliveries and message of what comes; nothing while the broker is away."""
    return [
        (int(each.value()), each.delivery_count(), each)
        for each in consumer.poll(seconds)
        if each.error() is None
    ]


def until_come(consumer: ShareConsumer, wanted: int, answer: Any) -> list[tuple[int, int]]:
    """Takes so many records, and answers each."""
    found: list[tuple[int, int]] = []
    end = time.monotonic() + PATIENCE_SECONDS
    while len(found) < wanted:
        assert time.monotonic() < end, found
        for number, count, message in polled(consumer):
            found.append((number, count))
            consumer.acknowledge(message, answer(number, count))
        assert not any(consumer.commit_sync(30).values())
    return found


def test_what_is_released_comes_again_and_what_is_rejected_does_not(bootstrap: str) -> None:
    queue(bootstrap, "explicit", RECORDS)

    def answer(number: int, count: int) -> AcknowledgeType:
        if number % 2 == 0 or count > 1:
            return AcknowledgeType.ACCEPT
        return AcknowledgeType.RELEASE if number < 6 else AcknowledgeType.REJECT

    with member(bootstrap, "explicit", **{"share.acknowledgement.mode": "explicit"}) as consumer:
        found = until_come(consumer, RECORDS + 3, answer)
        assert polled(consumer, QUIET_SECONDS) == []
    first = [(number, 1) for number in range(RECORDS)]
    assert Counter(found) == Counter([*first, (1, 2), (3, 2), (5, 2)])


def test_what_a_member_left_comes_to_another(bootstrap: str) -> None:
    queue(bootstrap, "left", RECORDS)
    explicit = {"share.acknowledgement.mode": "explicit"}
    with member(bootstrap, "left", **explicit) as first:
        until_come(first, RECORDS, lambda *_: AcknowledgeType.RELEASE)
    with member(bootstrap, "left", **explicit) as second:
        found = until_come(second, RECORDS, lambda *_: AcknowledgeType.ACCEPT)
        assert polled(second, QUIET_SECONDS) == []
    assert {number for number, _ in found} == set(range(RECORDS))
    assert all(count >= 2 for _, count in found)


def test_two_members_share_the_records_and_accept_them_by_the_next_poll(bootstrap: str) -> None:
    queue(bootstrap, "both", 400)
    found = Counter[int]()
    with member(bootstrap, "both") as one, member(bootstrap, "both") as two:
        end = time.monotonic() + PATIENCE_SECONDS
        while len(found) < 400:
            assert time.monotonic() < end, len(found)
            for each in (one, two):
                found.update(number for number, *_ in polled(each, 0.5))
        for each in (one, two):
            each.commit_sync(30)
        time.sleep(QUIET_SECONDS)
        assert polled(one) == polled(two) == []
    assert found == Counter(range(400))


def test_a_worker_goes_on_when_its_broker_is_killed(tmp_path: Path) -> None:
    """What was answered as accepted never comes again, and nothing is left out."""
    address, data = quiet_address(), tmp_path / "data"
    accepted, came = set[int](), set[int]()
    with ExitStack() as stack:
        node = stack.enter_context(start_broker(data, COMMON, listen=address))
        queue(address, "worked", 0)
        consumer = stack.enter_context(
            member(address, "worked", **{"share.acknowledgement.mode": "explicit"})
        )
        for each in range(4):
            fill(address, "worked", each * 100, 100)
            work(consumer, came, accepted, wanted=each * 100 + 30)
            node.kill()
            node = stack.enter_context(start_broker(data, COMMON, listen=address))
        work(consumer, came, accepted, wanted=400)
    assert came == set(range(400))


def work(consumer: ShareConsumer, came: set[int], accepted: set[int], wanted: int) -> None:
    """Accepts records until so many were answered."""
    end = time.monotonic() + PATIENCE_SECONDS
    while len(accepted) < wanted:
        assert time.monotonic() < end, f"{len(accepted)} of {wanted} accepted"
        with suppress(KafkaException):
            found = polled(consumer)
            again = accepted & {number for number, *_ in found}
            assert not again, f"accepted, and given out once more: {sorted(again)[:5]}"
            came.update(number for number, *_ in found)
            for *_, message in found:
                consumer.acknowledge(message, AcknowledgeType.ACCEPT)
            if all(error is None for error in consumer.commit_sync(30).values()):
                accepted.update(number for number, *_ in found)
