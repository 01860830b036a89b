"""Topics of a running broker for the pipeline's tests, filled by a client of Kafka's."""

import itertools
import random
from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from pipeline.broker_client import BrokerClient
from protocol.errors import ErrorCode
from tests.support.spark.pipeline_logs import NOON_MS
from tests.support.worlds.node_process import NodeProcess

_numbers = itertools.count()


def make_topic(admin: AdminClient, partitions: int = 1, **config: str) -> str:
    name = f"sources-{next(_numbers)}"
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(30)
    return name


def produce(node: NodeProcess, topic: str, times: Sequence[int], **settings: str) -> None:
    dice = random.Random(0)
    producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 1, **settings})
    for number, at in enumerate(times):
        producer.produce(
            topic,
            key=f"k{number}" if number % 3 else None,
            value=dice.randbytes(number % 50 * 400) if number % 7 else None,
            timestamp=at,
            headers=[("trace", b"x"), ("empty", None)] if number % 5 == 0 else None,
        )
        if number % 40 == 0:
            producer.flush(30)
    assert not producer.flush(30)


def options(node: NodeProcess, topic: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": node.bootstrap, "subscribe": topic, **more}


def jumping(count: int) -> list[int]:
    dice = random.Random(count)
    return [NOON_MS + number * 1000 + dice.randint(-60_000, 60_000) for number in range(count)]


def leaderless(
    monkeypatch: pytest.MonkeyPatch, *, times: int, partitions: frozenset[int] = frozenset({0})
) -> None:
    """So many answers to Metadata say that partitions have no leader, as during an election."""
    receive, left = BrokerClient.receive, iter(range(times))

    def electing(client: BrokerClient, api: Any, version: int, number: int) -> Any:
        answer = receive(client, api, version, number)
        if api.name == "Metadata" and next(left, None) is not None:
            for each in answer.topics[0].partitions:
                if each.partition_index in partitions:
                    each.leader_id = -1
                    each.error_code = ErrorCode.LEADER_NOT_AVAILABLE
        return answer

    monkeypatch.setattr(BrokerClient, "receive", electing)
