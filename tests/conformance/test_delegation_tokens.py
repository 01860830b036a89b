"""Kafka's own tool makes, shows, renews and ends delegation tokens; Java logs in by one."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conformance.test_sasl_tools import GENERIC, client_properties, failure
from tests.integration.test_sasl import PASSWORD, SETTINGS, add_user
from tests.support.kafka.kafka_oracle import TOPICS_TOOL, available, run_tool
from tests.support.worlds.broker_process import start_broker

EXERCISES = {
    "Kafka's command-line tools": "delegation tokens",
}

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
TOKENS_TOOL = "org.apache.kafka.tools.DelegationTokenCommand"


class Shown(NamedTuple):
    """A row of the tool's table."""

    token_id: str
    hmac: str
    owner: str
    requester: str
    renewers: str


class Tool:
    """The tool at a broker, as a user."""

    def __init__(self, bootstrap: str, file: str) -> None:
        self.at = ("--bootstrap-server", bootstrap, "--command-config", file)

    def rows(self, *arguments: str) -> list[Shown]:
        """The tokens in its answer."""
        lines = run_tool(TOKENS_TOOL, *self.at, *arguments).splitlines()
        rows = [line.split() for line in lines if "User:" in line and "=" in line]
        return [Shown(*row[:4], row[4].strip("[]")) for row in rows]

    def create(self, *arguments: str) -> Shown:
        (row,) = self.rows("--create", "--max-life-time-period", "-1", *arguments)
        return row

    def change(self, verb: str, period: str, hmac: str) -> str:
        return run_tool(TOKENS_TOOL, *self.at, f"--{verb}", f"--{period}", "-1", "--hmac", hmac)

    def topics(self, *arguments: str) -> str:
        return run_tool(TOPICS_TOOL, *self.at, *arguments)


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = tmp_path_factory.mktemp("tokens") / "data"
    add_user(data, "admin", PASSWORD)
    add_user(data, "bob", PASSWORD)
    secret = {"delegation.token.secret.key": "a secret of tests"}
    with start_broker(data, SETTINGS | secret) as node:
        yield node.bootstrap


def token_properties(folder: Path, token: Shown, mechanism: str) -> str:
    """A client's file for a log-in by a token."""
    file = Path(client_properties(folder, mechanism, token.token_id, token.hmac))
    file.write_text(file.read_text().replace('";', '" tokenauth="true";'))
    return str(file)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_life_of_a_token(bootstrap: str, tmp_path: Path, mechanism: str) -> None:
    admin = Tool(bootstrap, client_properties(tmp_path, mechanism, "admin", PASSWORD))
    token = admin.create("--renewer-principal", "User:bob")
    assert (token.owner, token.requester, token.renewers) == (
        "User:admin",
        "User:admin",
        "User:bob",
    )
    assert token in admin.rows("--describe", "--owner-principal", "User:admin")

    bob = Tool(bootstrap, client_properties(tmp_path, mechanism, "bob", PASSWORD))
    assert "Completed renew" in bob.change("renew", "renew-time-period", token.hmac)

    by_token = Tool(bootstrap, token_properties(tmp_path, token, mechanism))
    by_token.topics("--create", "--topic", f"by-token-{mechanism}")
    assert f"by-token-{mechanism}" in by_token.topics("--list")
    refused = failure(TOKENS_TOOL, *by_token.at, "--create", "--max-life-time-period", "-1")
    assert "DelegationTokenDisabled" in refused or "not allowed" in refused.lower(), refused

    bob.change("expire", "expiry-time-period", token.hmac)
    assert token not in admin.rows("--describe", "--owner-principal", "User:admin")
    assert GENERIC + mechanism in failure(TOPICS_TOOL, *by_token.at, "--list")


def test_a_token_for_somebody_else(bootstrap: str, tmp_path: Path) -> None:
    admin = Tool(bootstrap, client_properties(tmp_path, "SCRAM-SHA-256", "admin", PASSWORD))
    token = admin.create("--owner-principal", "User:bob")
    assert (token.owner, token.requester) == ("User:bob", "User:admin")
    bob = Tool(bootstrap, client_properties(tmp_path, "SCRAM-SHA-256", "bob", PASSWORD))
    assert bob.rows("--describe", "--owner-principal", "User:bob") == [token]
