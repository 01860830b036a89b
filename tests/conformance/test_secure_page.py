"""docs/tasks/secure-a-broker.md works as it is written, with Kafka's own tools."""

import shutil
from pathlib import Path

import pytest

from tests.support.kafka.kafka_oracle import CONFIGS_TOOL, TOPICS_TOOL, available
from tests.support.kafka.page_commands import blocks_of, place_with, run
from tests.support.ports import free_port
from tests.support.worlds.broker_process import HOROLOG, own_environment
from tests.support.worlds.node_process import NodeProcess

EXERCISES = {
    "Kafka's command-line tools": "TLS, users and ACLs, as the guide has it",
}

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
    pytest.mark.skipif(not shutil.which("kcat"), reason="kcat is not installed"),
    pytest.mark.timeout(300),
]
BLOCKS = blocks_of("secure-a-broker.md", "test_secure_page.py")
RUN_SECONDS = 200
TOOLS = {
    "kafka-topics": TOPICS_TOOL,
    "kafka-configs": CONFIGS_TOOL,
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}
SERVE = "horolog serve "


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return place_with(TOOLS, tmp_path)


def test_every_command_of_the_page(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    (at,) = [at for at, block in enumerate(BLOCKS) if block.startswith(SERVE)]
    port = str(free_port())
    blocks = [block.replace("9094", port) for block in BLOCKS]
    said = [run(block, place, own_environment(), RUN_SECONDS) for block in blocks[:at]]
    assert "all right" in said[-1]
    command = [str(HOROLOG), *blocks[at].split()[1:], "--http", "127.0.0.1:0"]
    environment = own_environment()
    with NodeProcess(command, place / "log", ready_within_seconds=60, environment=environment):
        made, listed, read, refused, by_kcat = [
            run(block, place, own_environment(), RUN_SECONDS) for block in blocks[at + 1 :]
        ]
    assert "Created topic orders" in made
    assert "Completed updating config for user alice" in made
    assert "User:alice" in listed
    assert "a first order" in read
    assert "refused, as it should be" in refused
    assert '"principal":"User:alice"' in refused
    assert by_kcat == "a first order\n"
