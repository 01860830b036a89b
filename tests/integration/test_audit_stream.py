"""The audit stream of a running broker: who wrote which offsets with which times, as rows."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.worlds.broker_process import start_broker

HOUR_MS = 3_600_000
AUDIT = {"horolog.audit.topic": "horolog.audit", "horolog.audit.interval.ms": "200"}


def make(bootstrap: str, topic: str, **config: str) -> None:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1, config=settings)])[topic].result(30)


def produce(bootstrap: str, topic: str, client_id: str, times: list[int]) -> int:
    """How many were taken."""
    taken: list[Any] = []
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": client_id, "linger.ms": 5})
    for when in times:
        producer.produce(
            topic, b"v", timestamp=when,
            on_delivery=lambda error, message: error or taken.append(message),
        )  # fmt: skip
    producer.flush(30)
    return len(taken)


def rows_until(
    bootstrap: str, is_enough: Callable[[list[dict[str, Any]]], bool]
) -> list[dict[str, Any]]:
    """The rows of the stream, from its begin until there are enough."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test"})
    consumer.assign([TopicPartition("horolog.audit", 0, 0)])
    rows: list[dict[str, Any]] = []
    deadline = time.monotonic() + 30
    while not is_enough(rows) and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and not message.error():
            rows.append(json.loads(message.value()))
    consumer.close()
    return rows


def total(rows: list[dict[str, Any]], client_id: str, name: str) -> int:
    return sum(row[name] for row in rows if row["client_id"] == client_id)


def test_each_client_is_told_apart_with_its_offsets_and_its_clock(tmp_path: Path) -> None:
    now = time.time_ns() // 1_000_000
    with start_broker(tmp_path / "data", AUDIT) as node:
        bootstrap = node.bootstrap
        make(bootstrap, "t", horolog_timestamp_policy="accept")
        assert produce(bootstrap, "t", "good", [now] * 30) == 30
        assert produce(bootstrap, "t", "ahead", [now + 48 * HOUR_MS] * 20) == 20
        rows = rows_until(bootstrap, lambda rows: sum(row["records"] for row in rows) >= 50)
    assert {row["topic"] for row in rows} == {"t"}
    assert (total(rows, "good", "records"), total(rows, "ahead", "records")) == (30, 20)
    good, ahead = ([r for r in rows if r["client_id"] == name] for name in ("good", "ahead"))
    assert min(row["first"] for row in good) == 0
    assert max(row["last"] for row in good) == 29
    assert min(row["first"] for row in ahead) == 30
    assert max(row["last"] for row in ahead) == 49
    assert all(not row["dirty"] for row in good)
    assert sum(row["dirty"]["future: bound: accepted"] for row in ahead) == 20
    assert all(row["skew_max_ms"] < -47 * HOUR_MS for row in ahead)
    assert all(abs(row["skew_min_ms"]) < HOUR_MS for row in good)
    assert all(row["address"] == "127.0.0.1" and row["v"] == 1 for row in rows)


def test_what_was_refused_is_noted_and_a_stop_loses_nothing(tmp_path: Path) -> None:
    now = time.time_ns() // 1_000_000
    slow = {**AUDIT, "horolog.audit.interval.ms": "3600000"}
    with start_broker(tmp_path / "data", slow) as node:
        make(node.bootstrap, "t")
        assert not produce(node.bootstrap, "t", "seconds", [now + 365 * 24 * HOUR_MS] * 10)
        assert produce(node.bootstrap, "t", "good", [now] * 5) == 5
    with start_broker(tmp_path / "data", slow) as node:
        rows = rows_until(node.bootstrap, lambda rows: len(rows) >= 2)
    refused = next(row for row in rows if row["client_id"] == "seconds")
    assert (refused["records"], refused["first"]) == (0, None)
    assert refused["dirty"] == {"future: bound: rejected": 10}
    assert total(rows, "good", "records") == 5


def test_without_the_setting_there_is_no_such_topic(tmp_path: Path) -> None:
    with start_broker(tmp_path / "data") as node:
        make(node.bootstrap, "t")
        produce(node.bootstrap, "t", "good", [-1] * 3)
        topics = AdminClient({"bootstrap.servers": node.bootstrap}).list_topics(timeout=10).topics
    assert set(topics) == {"t"}
