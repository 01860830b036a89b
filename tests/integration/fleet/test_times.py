"""Answers by time of a fleet: those of one broker on the same records, whoever leads them."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.tier.s3_server import S3Server
from tests.support.worlds.broker_process import start_broker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

RECORDS, PARTITIONS = 3000, 3
HOUR_MS = 3_600_000
PATIENCE = 60.0
CONFIG = {"internal.segment.bytes": "20000", "retention.ms": "-1"}


@pytest.fixture
def fleet(both: tuple[PostgresServer, S3Server], tmp_path: Path) -> Iterator[FleetOfBrokers]:
    with some_brokers(tmp_path, both, (1, 2, 3)) as brokers:
        yield brokers


def made(bootstrap: str, **more: str) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic("t", PARTITIONS, config={**CONFIG, **more})
    admin.create_topics([new])["t"].result(30)
    return admin


def send(bootstrap: str, times: Sequence[int]) -> None:
    """One record a time, in one order; each partition has every third."""
    producer = Producer({
        "bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5,
        "batch.num.messages": 7,
    })  # fmt: skip
    for number, at in enumerate(times):
        producer.produce("t", b"%d" % number, partition=number % PARTITIONS, timestamp=at)
        producer.poll(0)
    assert producer.flush(60) == 0


def leaders(admin: AdminClient) -> dict[int, int]:
    found = asked_again(lambda: admin.list_topics("t", timeout=10).topics["t"].partitions)
    return {number: each.leader for number, each in found.items()}


def answers(bootstrap: str, asked: Sequence[int]) -> list[Any]:
    """Offsets by each time, and those of the largest time, of each partition."""
    found: list[Any] = asked_again(lambda: all_by_time(bootstrap, asked))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    largest = {TopicPartition("t", each): OffsetSpec.max_timestamp() for each in range(PARTITIONS)}
    for place in largest:
        result = asked_again(
            lambda place=place: admin.list_offsets({place: largest[place]})[place].result(30)
        )
        found.append((result.offset, result.timestamp))
    return found


def all_by_time(bootstrap: str, asked: Sequence[int]) -> list[list[int]]:
    """By a consumer of its own: it keeps a leader that it has once heard of, be it gone."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none"})
    try:
        return [by_time(consumer, at) for at in asked]
    finally:
        consumer.close()


def by_time(consumer: Consumer, at: int) -> list[int]:
    """Offsets; a partition without an answer has its error beside what was asked."""
    places = [TopicPartition("t", each, at) for each in range(PARTITIONS)]
    told = consumer.offsets_for_times(places, timeout=10)
    for each in told:
        if each.error is not None:
            raise KafkaException(each.error)
    return [each.offset for each in told]


def asked_again(ask: Callable[[], Any]) -> Any:
    """The answer; such calls of this client ask but once, and leaders may be moving."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return ask()
        except KafkaException:
            if time.monotonic() >= end:
                raise
            time.sleep(0.2)


def stamps(bootstrap: str) -> dict[tuple[int, int], int]:
    """Times of all records, as the log has them."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none"})
    consumer.assign([TopicPartition("t", each, 0) for each in range(PARTITIONS)])
    found: dict[tuple[int, int], int] = {}
    end = time.monotonic() + PATIENCE
    while len(found) < RECORDS and time.monotonic() < end:
        for each in consumer.consume(500, 1.0):
            assert each.error() is None, each.error()
            found[each.partition(), each.offset()] = each.timestamp()[1]
    consumer.close()
    assert len(found) == RECORDS
    return found


def kill_leaders(fleet: FleetOfBrokers, admin: AdminClient) -> None:
    """The leader of partition 0 goes; returns when others lead all that it had."""
    gone = leaders(admin)[0]
    fleet.kill(gone)
    end = time.monotonic() + PATIENCE
    while not set(leaders(admin).values()) <= fleet.running.keys():
        assert time.monotonic() < end, "no take-over"
        time.sleep(0.1)


def test_by_record_times_a_fleet_says_what_one_broker_says(
    fleet: FleetOfBrokers, tmp_path: Path
) -> None:
    """Disordered times; through a take-over, and by a node that had none of the records."""
    dice, now = random.Random(7), int(time.time() * 1000)
    times = [now - dice.randrange(HOUR_MS) for _ in range(RECORDS)]
    asked = [now - HOUR_MS - 1, now, *(now - dice.randrange(HOUR_MS) for _ in range(100))]
    with start_broker(tmp_path / "alone") as alone:
        made(alone.bootstrap)
        send(alone.bootstrap, times)
        expected = answers(alone.bootstrap, asked)
    admin = made(fleet.bootstrap)
    send(fleet.bootstrap, times)
    assert answers(fleet.bootstrap, asked) == expected
    kill_leaders(fleet, admin)
    assert answers(fleet.bootstrap, asked) == expected


def test_times_of_arrival_outlive_a_take_over(fleet: FleetOfBrokers) -> None:
    admin = made(fleet.bootstrap, **{"message.timestamp.type": "LogAppendTime"})
    began = int(time.time() * 1000)
    send(fleet.bootstrap, [0] * RECORDS)
    ended = int(time.time() * 1000)
    before = stamps(fleet.bootstrap)
    assert min(before.values()) >= began
    assert max(before.values()) <= ended
    asked = sorted(set(before.values()))[::5]
    known = answers(fleet.bootstrap, asked)
    kill_leaders(fleet, admin)
    assert stamps(fleet.bootstrap) == before
    assert answers(fleet.bootstrap, asked) == known
