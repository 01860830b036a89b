"""Quotas of changed partitions (KIP-599) and of new connections (KIP-612), beside a real Kafka 4.3.

The rates are so small that nothing is saved up while a test runs.
"""

import itertools
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from protocol.apis import alter_client_quotas as quotas
from protocol.apis import create_partitions, create_topics, delete_topics, metadata
from tests.support.clients.wire import WireClient
from tests.support.kafka.kafka_oracle import (
    CONFIGS_TOOL,
    TOPICS_TOOL,
    available,
    run_tool,
    start_kafka,
)
from tests.support.patience import until
from tests.support.worlds.broker_process import start_broker

EXERCISES = {"Kafka's command-line tools": "configs (quotas of addresses)"}
pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
SAVED_SECONDS = 11
SLOW = 0.01  # partitions a second: 100 seconds for each
MUTATIONS, CONNECTIONS = "controller_mutation_rate", "connection_creation_rate"
NUMBERS = itertools.count()
TRIES = 10
SETTLE_SECONDS = 0.5


class Side(NamedTuple):
    """A broker."""

    bootstrap: str
    admin: WireClient

    def client(self, client_id: str) -> WireClient:
        """A new connection: those that must rest are not served for long."""
        host, _, port = self.bootstrap.rpartition(":")
        return WireClient(host, int(port), client_id)

    def limit(self, kind: str, name: str | None, key: str, rate: float | None) -> Any:
        entity = quotas.EntityData(entity_type=kind, entity_name=name)
        op = quotas.OpData(key=key, value=rate or 0.0, remove=rate is None)
        entry = quotas.EntryData(entity=[entity], ops=[op])
        answer = self.admin.call(quotas.AlterClientQuotasRequest(entries=[entry]), 1)
        time.sleep(SETTLE_SECONDS if rate else 0)
        return answer.entries[0].error_code


Told = tuple[list[int], int]
"""The codes, and for how many partitions the client has to rest."""


def told(codes: list[int], throttle_ms: int) -> Told:
    return codes, round(throttle_ms * SLOW / 1000)


def create(*topics: tuple[str, int], version: int = 7, check: bool = False) -> Any:
    asked = [
        create_topics.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
        for name, count in topics
    ]
    request = create_topics.CreateTopicsRequest(topics=asked, timeout_ms=9000, validate_only=check)

    def ask(client: WireClient) -> Told:
        answer = client.call(request, version)
        return told([each.error_code for each in answer.topics], answer.throttle_time_ms)

    return ask


def grow(name: str, count: int, version: int = 3, *, check: bool = False) -> Any:
    topic = create_partitions.CreatePartitionsTopic(name=name, count=count, assignments=None)
    request = create_partitions.CreatePartitionsRequest(
        topics=[topic], timeout_ms=9000, validate_only=check
    )

    def ask(client: WireClient) -> Told:
        answer = client.call(request, version)
        return told([each.error_code for each in answer.results], answer.throttle_time_ms)

    return ask


def delete(name: str, version: int = 6) -> Any:
    request = delete_topics.DeleteTopicsRequest(
        topics=[delete_topics.DeleteTopicState(name=name)], topic_names=[name], timeout_ms=9000
    )

    def ask(client: WireClient) -> Told:
        answer = client.call(request, version)
        return told([each.error_code for each in answer.responses], answer.throttle_time_ms)

    return ask


Ask = Callable[[WireClient], Told]
STORIES: dict[str, list[Ask]] = {
    "refused": [
        create(("a", 3)), create(("b", 1)), create(("b", 1), ("c", 2)), grow("a", 4), delete("a"),
        create(("a", 1)), create(("bad name", 1)), create(("b", 1), check=True), grow("a", 2),
    ],
    "one after the other": [create(("a", 1)), create(("b", 1), ("c", 1), ("d", 1))],
    "a check counts": [create(("a", 4), check=True), create(("b", 1))],
    "a check of growth counts": [create(("a", 1), version=5), grow("a", 3, check=True),
                                 grow("a", 2), grow("a", 2, version=2)],
    "a refusal costs nothing": [
        create(("bad name", 30)), delete("none"), grow("none", 30), create(("a", 2)),
    ],
    "older versions": [
        create(("a", 3), version=5), create(("b", 1), version=5), create(("c", 1), version=6),
        grow("a", 5, version=2), delete("b", version=4), delete("a", version=5),
    ],
    "growth": [grow("there", 4), grow("there", 5), grow("there", 3), grow("there", 4)],
    "deletion": [create(("a", 1)), delete("there"), create(("b", 1)), delete("a", version=4)],
}  # fmt: skip
"""Requests of one client that has saved up for a tenth of a partition."""


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    base: Path = tmp_path_factory.mktemp("quotas")
    with ExitStack() as stack:
        found = []
        for node in (start_kafka(base / "kafka"), start_broker(base / "ours")):
            running = stack.enter_context(node)
            host, _, port = running.bootstrap.rpartition(":")
            admin = stack.enter_context(WireClient(host, int(port), "admin"))
            found.append(Side(running.bootstrap, admin))
        yield found[0], found[1]


def answers(side: Side, name: str, story: list[Ask]) -> list[Told]:
    client_id = f"client of {name} {next(NUMBERS)}"
    create(("there", 2))(side.admin)
    assert side.limit("client-id", client_id, MUTATIONS, SLOW) == 0
    found = []
    for ask in story:
        with side.client(client_id) as client:
            found.append(ask(client))
    assert side.limit("client-id", client_id, MUTATIONS, None) == 0
    for topic in ("a", "b", "c", "d", "there"):
        delete(topic)(side.admin)
    return found


@pytest.mark.parametrize("name", STORIES)
def test_who_changes_too_many_partitions_is_answered_as_by_kafka(
    sides: tuple[Side, Side], name: str
) -> None:
    ours = answers(sides[1], name, STORIES[name])
    for _ in range(TRIES):  # Kafka answers before the limit holds
        kafka = answers(sides[0], name, STORIES[name])
        if kafka == ours:
            break
    assert ours == kafka


def is_refused(side: Side, client_id: str) -> bool:
    """True once nothing is left of the limit; each check counts as if it made a partition."""
    with side.client(client_id) as client:
        codes, _ = create(("checked", 1), check=True)(client)
    return bool(codes == [89])


def test_who_must_rest_is_not_served_meanwhile(sides: tuple[Side, Side]) -> None:
    for side in sides:
        assert side.limit("client-id", "resting", MUTATIONS, SLOW) == 0
        until(lambda side=side: is_refused(side, "resting"), "the limit holds")
        with side.client("resting") as client:
            assert create(("y", 1))(client)[0] == [89]
            client.socket.settimeout(2)
            with pytest.raises(TimeoutError):
                client.call(metadata.MetadataRequest(topics=[]), 8)


def test_the_tool_says_that_the_quota_is_exceeded(sides: tuple[Side, Side], tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("client.id=hasty\n")
    for side in sides:
        assert side.limit("client-id", "hasty", MUTATIONS, SLOW) == 0
        of = ("--bootstrap-server", side.bootstrap, "--command-config", str(config), "--create")
        until(lambda side=side: is_refused(side, "hasty"), "the limit holds")
        with pytest.raises(AssertionError, match="The throttling quota has been exceeded"):
            run_tool(TOPICS_TOOL, *of, "--topic", "hasty-2", "--partitions", "1")


def connected(side: Side, tries: int) -> int:
    """How many of so many connections are served; the others are closed."""
    host, _, port = side.bootstrap.rpartition(":")
    sockets = [socket.create_connection((host, int(port)), timeout=10) for _ in range(tries)]
    served = 0
    for each in sockets:
        client = WireClient.over(each)
        try:
            client.call(metadata.MetadataRequest(topics=[]), 8)
        except ConnectionError:
            continue
        finally:
            client.close()
        served += 1
    return served


@pytest.mark.parametrize("host", ["127.0.0.1", None])
def test_an_address_that_comes_too_often_is_closed(
    sides: tuple[Side, Side], host: str | None
) -> None:
    for side in sides:
        assert side.limit("ip", host, CONNECTIONS, 1) == 0
        until(lambda side=side: 0 < connected(side, 40) <= SAVED_SECONDS, "some are closed")
        assert side.limit("ip", host, CONNECTIONS, None) == 0
        until(lambda side=side: connected(side, 40) == 40, "all are served")


def test_the_tool_sets_and_shows_limits_of_addresses(sides: tuple[Side, Side]) -> None:
    shown = []
    for side in sides:
        of = ("--bootstrap-server", side.bootstrap, "--entity-type", "ips")
        one = (*of, "--entity-name", "10.1.2.3")
        run_tool(CONFIGS_TOOL, *one, "--alter", "--add-config", f"{CONNECTIONS}=7")
        run_tool(CONFIGS_TOOL, *of, "--entity-default", "--alter", "--add-config",
                 f"{CONNECTIONS}=100000")  # fmt: skip
        told = run_tool(CONFIGS_TOOL, *of, "--describe"), run_tool(CONFIGS_TOOL, *one, "--describe")
        run_tool(CONFIGS_TOOL, *one, "--alter", "--delete-config", CONNECTIONS)
        run_tool(CONFIGS_TOOL, *of, "--entity-default", "--alter", "--delete-config", CONNECTIONS)
        gone = run_tool(CONFIGS_TOOL, *of, "--describe")
        shown.append([sorted(each.splitlines()) for each in (*told, gone)])
    assert shown[0] == shown[1]
    assert f"{CONNECTIONS}=7.0" in shown[1][1][0]
