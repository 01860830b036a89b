"""Client telemetry (KIP-714): the same requests to a real Kafka 4.3 with a plug-in, and to ours."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from protocol.apis.api_versions import ApiVersionsRequest
from protocol.apis.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from protocol.apis.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.apis.push_telemetry import PushTelemetryRequest
from protocol.records.compression import Codec, deflate
from tests.support.clients import java_programs
from tests.support.clients.java_programs import JavaProgram
from tests.support.clients.wire import WireClient
from tests.support.kafka.kafka_oracle import start_kafka
from tests.support.patience import until
from tests.support.records.pushes import gauge, point, push_of
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.handler_world import altered

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not java_programs.available(), reason="needs java, javac and mvn"),
]
ZERO, ONE = UUID(int=0), UUID(int=1)
KNOWN = UUID("8f3c7a52-1b4e-4d69-9c0a-f2e5d1b7a6c3")
INTERVAL_MS = 3000
"""Long enough for all steps of a scenario that come too early."""
SOME = push_of(gauge("org.apache.kafka.producer.m", point(1.0, {"node_id": 1})))
Step = Callable[["Client"], Any]


class Client:
    """One connection, and what it was told last."""

    def __init__(self, bootstrap: str, client_id: str = "asking") -> None:
        self.bootstrap, self.client_id = bootstrap, client_id
        self.instance_id, self.subscription_id = ZERO, 0
        self.connect()

    def connect(self) -> None:
        host, port = self.bootstrap.split(":")
        self.wire = WireClient(host, int(port), client_id=self.client_id)
        self.wire.call(
            ApiVersionsRequest(client_software_name="tests", client_software_version="1.0"), 3
        )


def get(instance_id: UUID | None = None) -> Step:
    """Asks, at first for a new id."""

    def step(client: Client) -> Any:
        asked = client.instance_id if instance_id is None else instance_id
        answer = client.wire.call(GetTelemetrySubscriptionsRequest(client_instance_id=asked), 0)
        if answer.error_code == 0:
            client.instance_id = answer.client_instance_id
            client.subscription_id = answer.subscription_id
        return (
            answer.error_code,
            answer.client_instance_id == ZERO,
            answer.client_instance_id == asked,
            sorted(answer.requested_metrics),
            answer.push_interval_ms,
            answer.accepted_compression_types,
            answer.telemetry_max_bytes,
            answer.delta_temporality,
        )

    return step


def number(client: Client) -> Any:
    """The subscription's id itself."""
    return client.subscription_id


def push(metrics: bytes = SOME, codec: int = 0, **fields: Any) -> Step:
    """Pushes for the subscription that was got last."""

    def step(client: Client) -> Any:
        named = {
            "client_instance_id": client.instance_id,
            "subscription_id": client.subscription_id,
            **fields,
        }
        request = PushTelemetryRequest(metrics=metrics, compression_type=codec, **named)
        return client.wire.call(request, 0).error_code

    return step


def rest(client: Client) -> None:
    time.sleep(INTERVAL_MS / 1000 + 0.1)


def reconnect(client: Client) -> None:
    client.wire.close()
    time.sleep(1)  # until the broker has noticed
    client.connect()


last = push(terminating=True)
SCENARIOS: dict[str, list[Step]] = {
    "asks too soon": [get(), get(), rest, get()],
    "a known id": [get(KNOWN), number, push()],
    "pushes": [get(), push(), push(), get(), rest, push(), push()],
    "pushes nothing": [get(), push(b""), push(b"")],
    "unknown subscription": [get(), push(subscription_id=1), get(), push(), rest, push()],
    "unknown codec": [get(), push(codec=5), get(), push(codec=-1)],
    **{
        f"codec {codec.name}": [get(), push(deflate(codec, SOME), codec), push(b"x" * 9, codec)]
        for codec in Codec
    },
    **{
        f"garbage in {codec.name}": [get(), push(b"\xff" * 9, codec), get(), rest, push(), push()]
        for codec in Codec
    },
    "garbage, packed": [get(), push(deflate(Codec.ZSTD, b"\xff" * 9), Codec.ZSTD)],
    "too large": [get(), push(b"\0" * 1048577), get()],
    "just not too large": [get(), push(b"\xff" * 1048576)],
    "says that it ends": [get(), push(), last, last, push(), push(), rest, push(), get()],
    "ends at once": [get(), last, get(), last],
    "ends with errors": [get(), push(subscription_id=1, terminating=True), last, push()],
    "reserved ids": [push(client_instance_id=ZERO), push(client_instance_id=ONE), get(ONE)],
    "pushes without asking": [push(client_instance_id=UUID(int=5 << 64), subscription_id=9)],
    "comes again": [get(), push(), push(), reconnect, push(), get(), push()],
}


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Addresses of Kafka and of ours, both with one subscription for this test's software."""
    place = tmp_path_factory.mktemp("telemetry")
    classes = place / "classes"
    JavaProgram("TelemetryReceiver", java_programs.client_jars(), classes)
    with ExitStack() as stack:
        ours = start_broker(place / "ours", {"horolog.client.telemetry.enable": "true"})
        addresses = (
            stack.enter_context(ours).bootstrap,
            stack.enter_context(
                start_kafka(
                    place / "kafka", {"metric.reporters": "TelemetryReceiver"}, classes=classes
                )
            ).bootstrap,
        )
        for each in addresses:
            subscribe(each)
        yield addresses


def subscribe(bootstrap: str) -> None:
    wanted = {
        "all": ("*", str(INTERVAL_MS), "client_software_name=tests,client_id=ask.*"),
        "here": ("a.b", "200000", r"client_id=several-.,client_source_address=127\..+"),
        "slow": ("b,a.b", "3600000", r"client_id=(several|slow)-[^2],client_source_port=\d+"),
        "not": ("d", "1000", "client_id=several-2,client_software_version=2"),
        "two": ("c", "150000", "client_id=several-2"),
        "id": ("e", "160000", "client_instance_id=.{22},client_id=.*-[15]"),
    }
    resources = [
        altered(16, name, [("metrics", 0, metrics), ("interval.ms", 0, every), ("match", 0, match)])
        for name, (metrics, every, match) in wanted.items()
    ]
    client = Client(bootstrap)
    answer = client.wire.call(IncrementalAlterConfigsRequest(resources=resources), 1)
    assert {each.error_code for each in answer.responses} == {0}
    until(lambda: get(ZERO)(client)[3] == ["*"], "the subscription is in force")
    client.wire.close()
    client = Client(bootstrap, "several-5")
    until(lambda: len(get(ZERO)(client)[3]) == 3, "the others are, too")
    client.wire.close()


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_client_is_answered_as_by_kafka(name: str, nodes: tuple[str, str]) -> None:
    clients = [Client(each) for each in nodes]
    for position, step in enumerate(SCENARIOS[name]):
        if step is rest:
            rest(clients[0])
        else:
            ours, theirs = (step(each) for each in clients)
            assert ours == theirs, f"step {position}"
    for each in clients:
        each.wire.close()


@pytest.mark.parametrize(
    ("client_id", "metrics", "interval_ms"),
    [
        ("several-1", ["a.b", "b", "e"], 160_000),
        ("several-2", ["a.b", "c"], 150_000),
        ("several-3", ["a.b", "b"], 200_000),
        ("slow-3", ["a.b", "b"], 300_000),
        ("nobody", [], 300_000),
    ],
)
def test_subscriptions_match_as_in_kafka(
    nodes: tuple[str, str], client_id: str, metrics: list[str], interval_ms: int
) -> None:
    for each in nodes:
        client = Client(each, client_id)
        assert get()(client)[3:5] == (metrics, interval_ms)
        client.wire.close()


def test_both_list_the_apis(nodes: tuple[str, str]) -> None:
    listed = []
    for each in nodes:
        client = Client(each)
        request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
        answer = client.wire.call(request, 3)
        listed.append(
            [
                (one.api_key, one.min_version, one.max_version)
                for one in answer.api_keys
                if one.api_key in (71, 72)
            ]
        )
        client.wire.close()
    assert listed == [[(71, 0, 0), (72, 0, 0)]] * 2


def test_a_bomb_is_too_large_here(nodes: tuple[str, str], tmp_path: Path) -> None:
    """Kafka 4.3 unpacks all of it; later ones answer as we do."""
    bomb = deflate(Codec.ZSTD, b"\0" * (1 << 24))
    codes = []
    for each in nodes:
        client = Client(each)
        get()(client)
        codes.append(push(bomb, Codec.ZSTD)(client))
        client.wire.close()
    assert codes == [118, 87]
