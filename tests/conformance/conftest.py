"""The broker under judgement, and topics on it.

By default that is ours, started once a session as a process. So that the tests themselves can be
judged, HOROLOG_CONFORMANCE_BOOTSTRAP (HOST:PORT) names another running broker, and with
HOROLOG_CONFORMANCE_NODE=kafka the tests that start, stop and kill a node do so with a real Kafka;
with `fleet` all of them meet a fleet of three, through a fourth node that owns nothing.
"""

import itertools
import os
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.fleet.stand_in import start_fleet
from tests.support.kafka.kafka_oracle import start_kafka
from tests.support.worlds.broker_process import start_broker

with warnings.catch_warnings():
    # It reads its schemas by a function of Python's that is on its way out, and warnings fail us.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401 - imported here once, so that the tests may import it in peace

MakeTopic = Callable[..., str]
STARTS: Mapping[str, Callable[..., Any]] = {"kafka": start_kafka, "fleet": start_fleet}
start_node = STARTS.get(os.environ.get("HOROLOG_CONFORMANCE_NODE", ""), start_broker)
NO_RETENTION = {"log.initial.task.delay.ms": "86400000"}
"""The samples are years old: half a minute after the start they would be taken away."""
ELSEWHERE = os.environ.get("HOROLOG_CONFORMANCE_BOOTSTRAP")


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of the broker that the clients are pointed at."""
    if ELSEWHERE:
        yield ELSEWHERE
        return
    data_dir = tmp_path_factory.mktemp("conformance") / "data"
    with start_node(data_dir, NO_RETENTION) as node:
        yield node.bootstrap


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def create_topic(admin: AdminClient, name: str, partitions: int = 1, **config: str) -> str:
    """Makes a topic and waits for it; underscores in setting names stand for dots."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(30)
    return name


@pytest.fixture
def make_topic(admin: AdminClient) -> Iterator[MakeTopic]:
    """Makes topics of a fresh name; they go when the test ends."""
    made: list[str] = []
    counter = itertools.count()

    def make(partitions: int = 1, **config: str) -> str:
        name = f"conformance-{uuid.uuid4().hex[:8]}-{next(counter)}"
        made.append(create_topic(admin, name, partitions, **config))
        return name

    yield make
    if made:
        for done in admin.delete_topics(made).values():
            done.result(30)
