"""Metrics of clients in a fleet: subscriptions are the fleet's, and any node takes the pushes."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from protocol.apis.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from protocol.apis.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.apis.push_telemetry import PushTelemetryRequest
from tests.support.clients.scraped import metric_of
from tests.support.clients.wire import WireClient
from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.patience import until
from tests.support.records.pushes import gauge, point, push_of
from tests.support.tier.s3_server import S3Server
from tests.support.worlds.handler_world import altered
from tests.support.worlds.node_process import NodeProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
def fleet(both: tuple[PostgresServer, S3Server], tmp_path: Path) -> Iterator[FleetOfBrokers]:
    with some_brokers(tmp_path, both, ()) as brokers:
        yield brokers


def connected(node: NodeProcess) -> WireClient:
    host, _, port = node.bootstrap.rpartition(":")
    return WireClient(host, int(port))


def test_a_client_asks_one_node_and_pushes_to_another(fleet: FleetOfBrokers) -> None:
    settings = {"horolog.client.telemetry.enable": "true"}
    one, two = (fleet.start(each, settings) for each in (1, 2))
    with connected(one) as at_one, connected(two) as at_two:
        changes = [("metrics", 0, "a,b"), ("interval.ms", 0, "5000")]
        request = IncrementalAlterConfigsRequest(resources=[altered(16, "all", changes)])
        assert at_one.call(request, 1).responses[0].error_code == 0
        zero = GetTelemetrySubscriptionsRequest(client_instance_id=UUID(int=0))
        until(lambda: at_two.call(zero, 0).requested_metrics == ["a", "b"], "node 2 knows, too")
        mine = at_two.call(zero, 0)
        push = PushTelemetryRequest(
            client_instance_id=mine.client_instance_id,
            subscription_id=mine.subscription_id,
            metrics=push_of(gauge("a", point(7.0))),
        )
        assert at_one.call(push, 0).error_code == 0
        assert metric_of(one, "kafka_client_a") == 7.0
        assert metric_of(two, "kafka_client_a") == 0.0
