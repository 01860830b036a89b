"""kafka-streams-groups of Kafka 4.3 says the same of a real Kafka and of us, word by word."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conformance.test_streams_group_differential import COMMON, KAFKA, LEAVE, Side, stateful
from tests.support.kafka.kafka_oracle import SCRIPT, available, start_kafka
from tests.support.worlds.broker_process import start_broker

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"
OF_GROUP = ("--group", "tool")
WITH_MEMBERS = [
    ("--list",),
    ("--list", "--state"),
    ("--describe", *OF_GROUP),
    ("--describe", *OF_GROUP, "--offsets", "--verbose"),
    ("--describe", *OF_GROUP, "--state"),
    ("--describe", *OF_GROUP, "--state", "--verbose"),
    ("--describe", *OF_GROUP, "--members"),
    ("--describe", *OF_GROUP, "--members", "--verbose"),
]
EMPTY = [
    ("--describe", *OF_GROUP, "--state"),
    ("--reset-offsets", *OF_GROUP, "--input-topic", "four", "--to-earliest", "--dry-run"),
    ("--reset-offsets", *OF_GROUP, "--input-topic", "four", "--to-latest", "--execute"),
    ("--delete-offsets", *OF_GROUP, "--input-topic", "four"),
    ("--delete", *OF_GROUP),
    ("--list",),
]


def said(bootstrap: str, *arguments: str) -> tuple[int, list[str], list[str]]:
    """Exit status, output and errors of the tool, by words; ports are left out."""
    command = [sys.executable, str(SCRIPT), "tool", TOOL, "--bootstrap-server", bootstrap]
    done = subprocess.run(
        [*command, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, timeout=100,
    )  # fmt: skip
    out, errors = (
        sorted(re.sub(r":\d{4,5}\b", ":PORT", each).split()) for each in (done.stdout, done.stderr)
    )
    return done.returncode, out, errors


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[list[Side]]:
    """A Kafka and us, each with a group of one member that runs all tasks."""
    with ExitStack() as stack:
        kafka = stack.enter_context(start_kafka(tmp_path / "kafka", KAFKA))
        ours = stack.enter_context(start_broker(tmp_path / "ours", COMMON))
        found = [Side(kafka.bootstrap), Side(ours.bootstrap)]
        for side in found:
            stack.callback(side.wire.close)
            side.beat("tool", "a", topology=stateful("tool"))
            side.made("tool", "a")
            side.commit("tool", "a", side.epochs["tool/a"], "four")
        yield found


def test_the_tool_says_the_same(sides: list[Side]) -> None:
    _compare(sides, WITH_MEMBERS)
    for side in sides:
        side.beat("tool", "a", LEAVE)
    _compare(sides, EMPTY)


def _compare(sides: list[Side], commands: list[tuple[str, ...]]) -> None:
    for command in commands:
        kafka, ours = (said(each.bootstrap, *command) for each in sides)
        assert ours == kafka, command
        assert ours[0] == 0, (command, ours)
