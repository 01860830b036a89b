"""What a tombstone erases is gone from every file of the topic in time: the README's example, run.

And the same in a topic that holds more: other keys, another codec.
"""

import os
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from broker.cli.main import main
from tests.support.clients.admin import Admin
from tests.support.worlds.broker_process import HOROLOG, start_broker
from tests.support.worlds.node_process import NodeProcess

ROOT = Path(__file__).resolve().parents[2]
EXECUTED = re.compile(
    r"<!-- executed by tests/integration/test_erasure.py -->\n```console\n(.*?)```", re.DOTALL
)
START_MS = 1_772_366_460_000  # 2026-03-01T12:01:00Z
DAY_MS = 86_400_000
PEOPLE = {
    "cleanup.policy": "compact",
    "max.compaction.lag.ms": str(DAY_MS),
    "delete.retention.ms": str(DAY_MS),
}


def started(directory: Path) -> NodeProcess:
    """A broker where it is a minute past noon, to the millisecond."""
    node = start_broker(directory, options=("--test-clock", "2026-03-01T12:00:00Z"))
    http = ["--http", node.facts["http"], "--json"]
    assert main(["clock", "freeze", *http]) == 0
    assert main(["clock", "set", "2026-03-01T12:01:00Z", "--clock", "both", *http]) == 0
    return node


def make_people(node: NodeProcess) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_topics([NewTopic("people", 1, 1, config=PEOPLE)])["people"].result(30)


def put(node: NodeProcess, *people: tuple[str, str | None], codec: str = "none") -> None:
    """Records of the example's noon, or tombstones."""
    producer = Producer({"bootstrap.servers": node.bootstrap, "compression.type": codec})
    for key, value in people:
        producer.produce("people", value, key, timestamp=START_MS)
    assert producer.flush(30) == 0


def test_the_example_of_the_readme(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = EXECUTED.findall((ROOT / "docs" / "erasure.md").read_text())
    with started(tmp_path / "data") as node:
        make_people(node)
        put(node, ("alice@example.org", "12 Rose Lane"), ("bob@example.org", "3 Oak Road"))
        put(node, ("alice@example.org", None))
        capsys.readouterr()
        environment = {
            **os.environ,
            "HOROLOG_HTTP": node.facts["http"],
            "PATH": f"{HOROLOG.parent}:{os.environ['PATH']}",
        }
        shown = ""
        for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
            done = subprocess.run(
                line, shell=True, cwd=tmp_path, env=environment, text=True, check=False,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            shown += f"$ {line}\n{done.stdout}"
    assert shown == block


def test_nothing_is_left_in_any_file_whatever_else_the_topic_holds(tmp_path: Path) -> None:
    dice = random.Random(5)
    key, value = f"alice-{dice.getrandbits(64):x}", f"12 Rose Lane {dice.getrandbits(64):x}"
    others = [(f"key-{n % 50}", f"value-{dice.getrandbits(64):x}") for n in range(500)]
    with started(tmp_path / "data") as node:
        make_people(node)
        put(node, *others[:250], codec="lz4")
        put(node, (key, value))
        put(node, *others[250:])
        put(node, (key, None))
        has = in_files(tmp_path / "data")
        assert (has(key), has(value)) == (True, True)
        admin = Admin(node.facts["http"])
        for _ in range(2):
            admin.post("/api/clock/step", by="1d")
            assert has(key)
            admin.post("/api/clock/step", by="20s", every="5s")
            admin.post("/api/clock/step", by="61s")
            assert not has(value)
        assert not has(key)
        assert all(has(last) for _, last in others[450:])
        (state,) = admin.get("/api/topics/people/compaction")["partitions"]
    assert (state["first_dirty_offset"], state["blocked_by"]) == (502, "clean")


def in_files(directory: Path) -> Callable[[str], bool]:
    """Whether any file below holds such text."""

    def has(text: str) -> bool:
        files = [path for path in directory.rglob("*") if path.is_file()]
        return any(text.encode() in path.read_bytes() for path in files)

    return has
