"""Kafka's tools set and show the settings of groups, and subscriptions to metrics of clients."""

import pytest

from tests.support.kafka.kafka_oracle import CONFIGS_TOOL, available, run_tool

EXERCISES = {
    "Kafka's command-line tools": "settings of groups, client metrics",
}
CLIENT_METRICS_TOOL = "org.apache.kafka.tools.ClientMetricsCommand"
SESSION = "consumer.session.timeout.ms"

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]


def test_settings_of_a_group_are_altered_and_described(bootstrap: str) -> None:
    of = ("--bootstrap-server", bootstrap, "--entity-type", "groups")
    one = (*of, "--entity-name", "of-tool")
    run_tool(CONFIGS_TOOL, *one, "--alter", "--add-config", f"{SESSION}=50000")
    described = run_tool(CONFIGS_TOOL, *one, "--describe")
    assert (
        f"{SESSION}=50000 sensitive=false synonyms={{DYNAMIC_GROUP_CONFIG:{SESSION}=50000, "
        f"DEFAULT_CONFIG:group.{SESSION}=45000}}"
    ) in described
    assert "Dynamic configs for group of-tool are:" in run_tool(CONFIGS_TOOL, *of, "--describe")
    run_tool(CONFIGS_TOOL, *one, "--alter", "--delete-config", SESSION)
    assert SESSION not in run_tool(CONFIGS_TOOL, *one, "--describe")


def test_a_subscription_is_made_listed_described_and_deleted(bootstrap: str) -> None:
    at, name = ("--bootstrap-server", bootstrap), ("--name", "of-tool")
    told = ("--metrics", "a.b,c", "--interval", "7000", "--match", "client_id=x.*")
    run_tool(CLIENT_METRICS_TOOL, *at, "--alter", *name, *told)
    described = run_tool(CLIENT_METRICS_TOOL, *at, "--describe", *name)
    for line in ("interval.ms=7000", "metrics=a.b,c", "match=client_id=x.*"):
        assert line in described
    assert "of-tool" in run_tool(CLIENT_METRICS_TOOL, *at, "--list").split()
    run_tool(CLIENT_METRICS_TOOL, *at, "--delete", *name)
    assert "of-tool" not in run_tool(CLIENT_METRICS_TOOL, *at, "--list").split()
