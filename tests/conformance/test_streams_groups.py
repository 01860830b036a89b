"""A Kafka Streams application with `group.protocol=streams`, killed and restarted.

Its threads are members of a streams group (KIP-1071), its internal topics are made by the broker.
Application and broker are killed with -9 in turns; the words that it has counted in the end are
those that were written.
"""

import random
import socket
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import create_topic, start_node
from tests.conformance.test_streams import PARTITIONS, _wait, counted, ended
from tests.support.clients import java_programs
from tests.support.clients.java_programs import JavaProgram
from tests.support.kafka.kafka_oracle import run_tool

EXERCISES = {"Kafka Streams": "words counted as a streams group (KIP-1071); kills (-9)"}
pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not java_programs.available(), reason="needs Java and Maven"),
]
TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"
GROUPS_TOOL = "org.apache.kafka.tools.GroupsCommand"
GROUP = "word-counts"
INTERNAL = {
    f"{GROUP}-words-repartition",
    f"{GROUP}-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog",
}
SHORT_TIMES = {
    "group.streams.min.session.timeout.ms": "3000",
    "group.streams.session.timeout.ms": "3000",
    "group.streams.min.heartbeat.interval.ms": "300",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.initial.rebalance.delay.ms": "500",
}
"""A member that was killed is missed soon."""
LINES, WORDS, SEED = 500, 9, 7


def quiet_address() -> str:
    """An address that no connection of a client takes while the broker is down: below the ports
    that the system hands out.
    """
    for port in random.sample(range(10_240, 32_000), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return f"127.0.0.1:{port}"
    raise AssertionError("no free port")


def fill(address: str, dice: random.Random, counts: Counter[str]) -> None:
    """More lines; notes what the counts must come to."""
    producer = Producer({"bootstrap.servers": address, "acks": "all"})
    for _ in range(LINES):
        words = [f"w{dice.randrange(WORDS)}" for _ in range(3)]
        producer.produce("lines", " ".join(words))
        counts.update(words)
    assert producer.flush(30) == 0


def test_words_are_counted_exactly_once(tmp_path: Path) -> None:
    program = JavaProgram("WordCounts", java_programs.streams_jars(), tmp_path / "classes")
    dice, counts, log = random.Random(SEED), Counter[str](), tmp_path / "application.log"
    address, data_dir = quiet_address(), tmp_path / "data"
    begin = [address, "lines", "counts", str(tmp_path / "state")]
    with ExitStack() as stack:
        node = stack.enter_context(start_node(data_dir, SHORT_TIMES, listen=address))
        admin = AdminClient({"bootstrap.servers": address})
        for topic in ("lines", "counts"):
            create_topic(admin, topic, PARTITIONS)
        fill(address, dice, counts)
        application = program.start(*begin, log=log)
        stack.callback(ended, application)
        _wait(lambda: bool(counted(address)), log)
        for kills_the_broker in (False, True):
            fill(address, dice, counts)
            time.sleep(dice.uniform(0.2, 1.0))
            if kills_the_broker:
                node.kill()
                node = stack.enter_context(start_node(data_dir, SHORT_TIMES, listen=address))
            else:
                ended(application)
                application = program.start(*begin, log=log)
                stack.callback(ended, application)
        _wait(lambda: counted(address) == counts, log)
        assert admin.list_topics().topics.keys() >= INTERNAL
        _check_tools(address)


def _check_tools(address: str) -> None:
    """Kafka's tools know the group, its members and how far it is."""
    of_group = ("--bootstrap-server", address, "--describe", "--group", GROUP)
    state = run_tool(TOOL, *of_group, "--state")
    assert "Stable" in state or "Reconciling" in state, state
    members = run_tool(TOOL, *of_group, "--members").splitlines()
    assert sum(GROUP in line for line in members) >= 2, members
    offsets = run_tool(TOOL, *of_group)
    assert f"{GROUP}-words-repartition" in offsets, offsets
    listed = run_tool(GROUPS_TOOL, "--bootstrap-server", address, "--list")
    assert [line.split()[1].lower() for line in listed.splitlines() if GROUP in line] == ["streams"]
