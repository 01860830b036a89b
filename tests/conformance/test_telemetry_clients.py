"""Real clients push their metrics (KIP-714), and the scrape has them until they are gone.

A program of Kafka's own runs each Java client, with the settings that clients have by default.
"""

import itertools
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from prometheus_client.parser import text_string_to_metric_families

from tests.conformance.conftest import create_topic
from tests.support.kafka.kafka_oracle import SCRIPT, available, run_tool
from tests.support.patience import until
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

EXERCISES = {
    "kafka-clients, confluent-kafka, Kafka's command-line tools": "metrics pushed (KIP-714)",
}
CLIENT_METRICS_TOOL = "org.apache.kafka.tools.ClientMetricsCommand"
PRODUCER_TOOL = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_TOOL = "org.apache.kafka.tools.consumer.ConsoleConsumer"
TOPIC = "pushed"
needs_kafka = pytest.mark.skipif(not available(), reason="needs java and mvn")
pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

Series = Mapping[str, tuple[str, list[Mapping[str, str]]]]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    settings = {"horolog.client.telemetry.enable": "true"}
    with start_broker(tmp_path_factory.mktemp("telemetry") / "data", settings) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        create_topic(admin, TOPIC)
        run_tool(
            CLIENT_METRICS_TOOL, "--bootstrap-server", node.bootstrap, "--alter",
            "--name", "all", "--metrics", "*", "--interval", "300", "--match", "client_id=push-.*",
        )  # fmt: skip
        yield node


def of_client(node: NodeProcess, client_id: str) -> Series:
    """Kind and labels of the series of a client, by name, as Prometheus' library reads them."""
    with urllib.request.urlopen(f"http://{node.facts['http']}/metrics") as answer:
        text = answer.read().decode()
    found: dict[str, tuple[str, list[Mapping[str, str]]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.labels.get("client_id") == client_id:
                found.setdefault(sample.name, (family.type, []))[1].append(sample.labels)
    return found


def errors(node: NodeProcess) -> dict[str, float]:
    """Refusals of pushes, by their code."""
    with urllib.request.urlopen(f"http://{node.facts['http']}/metrics") as answer:
        text = answer.read().decode()
    return {
        sample.labels["error"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "horolog_request_errors_total" and sample.labels["api"] == "PushTelemetry"
    }


def wait_for(node: NodeProcess, client_id: str, name: str) -> Series:
    found: list[Series] = []

    def is_there() -> bool:
        found.append(of_client(node, client_id))
        return name in found[-1]

    until(is_there, f"{client_id} pushes {name}")
    return found[-1]


def java(tool: str, *arguments: str, log: Path) -> "subprocess.Popen[bytes]":
    with log.open("wb") as sink:
        return subprocess.Popen(
            [sys.executable, str(SCRIPT), "tool", tool, *arguments],
            stdin=subprocess.DEVNULL, stdout=sink, stderr=sink,
        )  # fmt: skip


@needs_kafka
def test_java_clients_push_and_say_when_they_close(node: NodeProcess, tmp_path: Path) -> None:
    producer = java(
        PRODUCER_TOOL, "--topic", TOPIC, "--num-records", "300", "--record-size", "10",
        "--throughput", "25", "--producer-props", f"bootstrap.servers={node.bootstrap}",
        "client.id=push-java", log=tmp_path / "producer",
    )  # fmt: skip
    consumer = java(
        CONSUMER_TOOL, "--topic", TOPIC, "--from-beginning", "--max-messages", "300",
        "--bootstrap-server", node.bootstrap, "--group", "pushing",
        "--command-property", "client.id=push-java-consumer", log=tmp_path / "consumer",
    )  # fmt: skip
    try:
        total = "kafka_client_producer_connection_creation_total"
        shown = wait_for(node, "push-java", total)
        assert shown[total][0] == "counter"
        latency = "kafka_client_producer_node_request_latency_avg"
        kind, labels = wait_for(node, "push-java", latency)[latency]
        assert kind == "gauge"
        assert "node-1" in {each["node_id"] for each in labels}
        assert len({each["client_instance_id"] for each in labels}) == 1
        lag = "kafka_client_consumer_coordinator_assigned_partitions"
        _, labels = wait_for(node, "push-java-consumer", lag)[lag]
        assert labels[0]["group_id"] == "pushing"
        assert producer.wait(60) == 0, (tmp_path / "producer").read_text()
        assert consumer.wait(60) == 0, (tmp_path / "consumer").read_text()
    finally:
        for each in (producer, consumer):
            each.kill()
            each.wait()
    assert of_client(node, "push-java"), "the last values stay for a scrape"
    for log in ("producer", "consumer"):
        assert "rror" not in (tmp_path / log).read_text()
    assert set(errors(node)) <= {"UNKNOWN_SUBSCRIPTION_ID"}


def test_librdkafka_pushes(node: NodeProcess) -> None:
    of: Any = {"bootstrap.servers": node.bootstrap, "enable.metrics.push": True}
    producer = Producer({**of, "client.id": "push-rd"})
    consumer = Consumer(
        {**of, "client.id": "push-rd-consumer", "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    shown: list[Series] = [{}, {}]

    def both_are_there() -> bool:
        producer.produce(TOPIC, b"x")
        producer.poll(0)
        consumer.poll(0)
        shown[:] = of_client(node, "push-rd"), of_client(node, "push-rd-consumer")
        return all(shown)

    until(both_are_there, "both push")
    assert shown[0]["kafka_client_producer_connection_creation_total"][0] == "counter"
    assert all(name.startswith("kafka_client_consumer_") for name in shown[1])
    consumer.close()
    producer.flush(10)


@needs_kafka
def test_clients_push_once_more_when_they_close(node: NodeProcess, tmp_path: Path) -> None:
    """Their first push would come after half of five minutes, so it is the last one that comes."""
    run_tool(
        CLIENT_METRICS_TOOL, "--bootstrap-server", node.bootstrap, "--alter", "--name", "last",
        "--metrics", "*", "--interval", "300000", "--match", "client_id=last-.*",
    )  # fmt: skip
    lives = itertools.count(1)

    def librdkafka_has_pushed() -> bool:
        began = time.monotonic()
        producer = Producer(
            {
                "bootstrap.servers": node.bootstrap,
                "client.id": "last-rd",
                "enable.metrics.push": True,
            }
        )
        producer.produce(TOPIC, b"x")
        assert producer.flush(10) == 0
        producer.poll(next(lives))  # it is longer with each until it knows its subscription
        del producer
        return bool(of_client(node, "last-rd")) and time.monotonic() - began < 100

    def java_has_pushed() -> bool:
        began = time.monotonic()
        with java(
            CONSUMER_TOOL, "--topic", TOPIC, "--from-beginning",
            "--timeout-ms", str(2000 * next(lives)), "--bootstrap-server", node.bootstrap,
            "--command-property", "client.id=last-java", log=tmp_path / "consumer",
        ) as program:  # fmt: skip
            program.wait(60)
        return bool(of_client(node, "last-java")) and time.monotonic() - began < 100

    until(librdkafka_has_pushed, "a last push of librdkafka")
    until(java_has_pushed, "a last push of Java's consumer")


def test_a_client_that_no_subscription_matches_pushes_nothing(node: NodeProcess) -> None:
    of: Any = {"bootstrap.servers": node.bootstrap, "enable.metrics.push": True}
    other, matched = Producer({**of, "client.id": "other"}), Producer({**of, "client.id": "push-m"})

    def matched_is_there() -> bool:
        for each in (other, matched):
            each.produce(TOPIC, b"x")
            each.poll(0)
        return bool(of_client(node, "push-m"))

    until(matched_is_there, "the one that matches pushes")
    assert not of_client(node, "other")


@needs_kafka
def test_the_tool_ends_what_it_began(node: NodeProcess) -> None:
    at, name = ("--bootstrap-server", node.bootstrap), ("--name", "short")
    of: Any = {"bootstrap.servers": node.bootstrap, "enable.metrics.push": True}
    run_tool(
        CLIENT_METRICS_TOOL, *at, "--alter", *name, "--interval", "200",
        "--metrics", "org.apache.kafka.producer.connection", "--match", "client_id=short-.*",
    )  # fmt: skip
    described = run_tool(CLIENT_METRICS_TOOL, *at, "--describe", *name)
    assert "metrics=org.apache.kafka.producer.connection" in described
    producer = Producer({**of, "client.id": "short-1"})

    def pushes() -> bool:
        producer.poll(0)
        return bool(of_client(node, "short-1"))

    until(pushes, "it pushes")
    assert {name.rsplit("_", 1)[0] for name in of_client(node, "short-1")} == {
        "kafka_client_producer_connection_creation"
    }
    run_tool(CLIENT_METRICS_TOOL, *at, "--delete", *name)
    assert "short" not in run_tool(CLIENT_METRICS_TOOL, *at, "--list").split()
    until(lambda: errors(node).get("UNKNOWN_SUBSCRIPTION_ID"), "its next push is refused")
