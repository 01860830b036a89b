"""kafkajs, at the versions that it sends by itself and at those that it sent to older brokers."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.clients.node_packages import commands, installed_packages, run_node
from tests.support.worlds.broker_process import start_broker

EXERCISES = {
    "kafkajs": "every version of Produce, Fetch and ListOffsets since 0.8",
}

FOLDER = Path(__file__).parent / "kafkajs"
COUNT = 300
NEWEST = {"Produce": 7, "Fetch": 11, "ListOffsets": 3}
AGES = {
    "0.8": {"Produce": 0, "Fetch": 0, "ListOffsets": 0},
    "0.9": {"Produce": 1, "Fetch": 1, "ListOffsets": 0},
    "0.10.0": {"Produce": 2, "Fetch": 2, "ListOffsets": 0},
    "0.10.1": {"Produce": 2, "Fetch": 3, "ListOffsets": 1},
    "0.11": {"Produce": 3, "Fetch": 4, "ListOffsets": 2},
    "today": {},
}

pytestmark = pytest.mark.skipif(commands() is None, reason="there is no Node.js here")


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with start_broker(tmp_path_factory.mktemp("kafkajs") / "data") as node:
        yield node.bootstrap


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("age", AGES)
def test_produce_fetch_and_offsets(bootstrap: str, age: str, codec: str) -> None:
    topic, now = f"{age}-{codec}", time.time_ns() // 1_000_000
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)

    got = exchange(bootstrap, topic, codec=codec, now=now, versions=AGES[age])

    versions = {**NEWEST, **AGES[age]}
    assert {name: got["sent"][name] for name in versions} == versions
    keeps_times = versions["Produce"] >= 2
    assert [answer["errorCode"] for answer in got["produced"]] == [0]
    assert [(int(m["offset"]), m["key"], m["value"]) for m in got["fetched"]] == [
        (n, "key", f"value {n}") for n in range(COUNT)
    ]
    if versions["Fetch"] >= 2:
        times = [int(message["timestamp"]) for message in got["fetched"]]
        assert times == ([now + n for n in range(COUNT)] if keeps_times else [-1] * COUNT)
    assert (got["offsets"]["low"], got["offsets"]["high"]) == ("0", str(COUNT))
    if versions["ListOffsets"]:
        assert got["offsets"]["byTime"] == str(COUNT // 2)


def exchange(bootstrap: str, topic: str, **asked: Any) -> Any:
    wanted = {"bootstrap": bootstrap, "topic": topic, "count": COUNT, "maxBytes": 4096, **asked}
    modules = installed_packages(FOLDER)
    printed = run_node(
        "node", str(FOLDER / "exchange.js"), json.dumps(wanted), env={"NODE_PATH": str(modules)}
    )
    return json.loads(printed)
