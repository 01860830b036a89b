"""Kafka's own tools and Java clients on a SASL listener: users made, shown, used and removed."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_sasl import PASSWORD, SETTINGS, add_user
from tests.support.kafka.kafka_oracle import CONFIGS_TOOL, SCRIPT, TOPICS_TOOL, available, run_tool
from tests.support.worlds.broker_process import start_broker

EXERCISES = {
    "Kafka's command-line tools": "users and SASL",
}

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
GENERIC = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism "
)


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = tmp_path_factory.mktemp("sasl-tools") / "data"
    add_user(data, "admin", PASSWORD)
    with start_broker(data, SETTINGS) as node:
        yield node.bootstrap


def client_properties(folder: Path, mechanism: str, user: str, password: str) -> str:
    """A file as Kafka's tools take it with --command-config."""
    jaas = f'{LOGIN_MODULES[mechanism]} required username="{user}" password="{password}";'
    file = folder / f"{mechanism}-{user}-{len(password)}.properties"
    file.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={jaas}\n"
    )
    return str(file)


def failure(tool: str, *arguments: str) -> str:
    """Output of a tool that must fail."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "tool", tool, *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip
    assert done.returncode != 0, done.stdout
    return done.stdout + done.stderr


@pytest.mark.parametrize("mechanism", list(LOGIN_MODULES))
def test_the_java_client_gets_in(bootstrap: str, tmp_path: Path, mechanism: str) -> None:
    file = client_properties(tmp_path, mechanism, "admin", PASSWORD)
    at = "--bootstrap-server", bootstrap, "--command-config", file
    topic = f"java-{mechanism}"
    run_tool(TOPICS_TOOL, *at, "--create", "--topic", topic)
    assert topic in run_tool(TOPICS_TOOL, *at, "--list")


@pytest.mark.parametrize(
    ("mechanism", "text"),
    [
        ("PLAIN", "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-512", GENERIC + "SCRAM-SHA-512"),
    ],
)
def test_the_java_client_hears_why_not(
    bootstrap: str, tmp_path: Path, mechanism: str, text: str
) -> None:
    for user, password in (("admin", "wrong"), ("nobody", PASSWORD)):
        file = client_properties(tmp_path, mechanism, user, password)
        at = "--bootstrap-server", bootstrap, "--command-config", file
        assert text in failure(TOPICS_TOOL, *at, "--list")


def test_users_by_kafka_configs(bootstrap: str, tmp_path: Path) -> None:
    file = client_properties(tmp_path, "SCRAM-SHA-256", "admin", PASSWORD)
    at = "--bootstrap-server", bootstrap, "--command-config", file
    user = "--entity-type", "users", "--entity-name", "dora"
    secret = "SCRAM-SHA-512=[iterations=8192,password=dora's]"
    assert "Completed updating config" in run_tool(
        CONFIGS_TOOL, *at, "--alter", *user, "--add-config", secret
    )
    described = run_tool(CONFIGS_TOOL, *at, "--describe", *user)
    assert "SCRAM-SHA-512=iterations=8192" in described
    everybody = run_tool(CONFIGS_TOOL, *at, "--describe", "--entity-type", "users")
    assert "'dora'" in everybody
    assert "'admin'" in everybody
    hers = client_properties(tmp_path, "SCRAM-SHA-512", "dora", "dora's")
    as_dora = "--bootstrap-server", bootstrap, "--command-config", hers
    run_tool(TOPICS_TOOL, *as_dora, "--list")
    run_tool(CONFIGS_TOOL, *at, "--alter", *user, "--delete-config", "SCRAM-SHA-512")
    assert GENERIC in failure(TOPICS_TOOL, *as_dora, "--list")
    few = "SCRAM-SHA-256=[iterations=100,password=x]"
    output = failure(CONFIGS_TOOL, *at, "--alter", *user, "--add-config", few)
    assert "iterations" in output.lower()
