"""kafka-share-groups of Kafka 4.3 says the same of a real Kafka and of us, word by word."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conformance.test_share_offsets_differential import COMMON, KAFKA, OffsetsSide
from tests.support.kafka.kafka_oracle import SCRIPT, available, start_kafka
from tests.support.worlds.broker_process import start_broker

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
TOOL = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
OF_GROUP = ("--group", "g")
OF_TOPIC = (*OF_GROUP, "--topic", "one")
COMMANDS = [
    ("--list",),
    ("--describe", *OF_GROUP),
    ("--describe", *OF_GROUP, "--offsets", "--verbose"),
    ("--describe", *OF_GROUP, "--state"),
    ("--describe", *OF_GROUP, "--members"),
    ("--reset-offsets", *OF_TOPIC, "--to-earliest", "--dry-run"),
    ("--reset-offsets", *OF_TOPIC, "--to-latest", "--execute"),
    ("--describe", *OF_GROUP),
    ("--delete-offsets", *OF_TOPIC),
    ("--describe", *OF_GROUP),
    ("--delete", *OF_GROUP),
    ("--list",),
]


def told(bootstrap: str, *arguments: str) -> tuple[int, list[str], list[str]]:
    """Exit status, output and errors of the tool, by words; ports are left out."""
    command = [sys.executable, str(SCRIPT), "tool", TOOL, "--bootstrap-server", bootstrap]
    done = subprocess.run(
        [*command, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, timeout=100,
    )  # fmt: skip
    out, errors = (
        re.sub(r":\d{4,5}\b", ":PORT", each).split() for each in (done.stdout, done.stderr)
    )
    return done.returncode, out, errors


@pytest.fixture
def bootstraps(tmp_path: Path) -> Iterator[list[str]]:
    """A Kafka and us, each with a group `g` that begins at offset 4 of topic `one`."""
    with ExitStack() as stack:
        kafka = stack.enter_context(start_kafka(tmp_path / "kafka", KAFKA))
        ours = stack.enter_context(start_broker(tmp_path / "ours", COMMON))
        for each in (kafka, ours):
            side = OffsetsSide(each.bootstrap)
            side.alter("g", {"one": {0: 4}})
            side.wire.close()
        yield [kafka.bootstrap, ours.bootstrap]


def test_the_tool_says_the_same(bootstraps: list[str]) -> None:
    for command in COMMANDS:
        kafka, ours = (told(each, *command) for each in bootstraps)
        assert ours == kafka, command
        assert ours[0] == 0, command
