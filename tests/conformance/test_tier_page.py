"""docs/tasks/tiered-storage.md works as it is written, with Kafka's own tools and a real store."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kafka.kafka_oracle import (
    CONFIGS_TOOL,
    OFFSETS_TOOL,
    TOPICS_TOOL,
    available,
)
from tests.support.kafka.page_commands import blocks_of, place_with, run
from tests.support.patience import until
from tests.support.ports import free_port
from tests.support.tier.s3_server import S3Server, is_seaweedfs_published, only_aws, seaweedfs
from tests.support.worlds.broker_process import HOROLOG, own_environment
from tests.support.worlds.node_process import NodeProcess

EXERCISES = {
    "Kafka's command-line tools": "topics with a tier, as the guide has it",
}

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
    pytest.mark.skipif(not shutil.which("kcat"), reason="kcat is not installed"),
    pytest.mark.skipif(not is_seaweedfs_published(), reason="SeaweedFS is not published for it"),
    pytest.mark.timeout(300),
]
BLOCKS = blocks_of("tiered-storage.md", "test_tier_page.py")
RUN_SECONDS = 120
TOOLS = {
    "kafka-topics": TOPICS_TOOL,
    "kafka-configs": CONFIGS_TOOL,
    "kafka-get-offsets": OFFSETS_TOOL,
}
RECORDS = 8000


@pytest.fixture(scope="module")
def store() -> Iterator[S3Server]:
    with seaweedfs() as running:
        yield running


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return place_with(TOOLS, tmp_path)


def test_every_command_of_the_page(
    store: S3Server, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    port = str(free_port())
    check, serve, make, wait, read, end = [
        block.replace("9092", port).replace("s3://bucket/prefix", store.url("page"))
        for block in BLOCKS
    ]
    tools = own_environment()
    assert "all right" in run(check, place, tools, RUN_SECONDS)
    command = [str(HOROLOG), *serve.split("2>")[0].split()[1:], "--http", "127.0.0.1:0"]
    with only_aws(store.environment):
        ours = own_environment()
    with NodeProcess(command, place / "broker.log", ready_within_seconds=60, environment=ours):
        assert "Created topic orders" in run(make, place, tools, RUN_SECONDS)
        until(lambda: run(wait, place, tools, RUN_SECONDS).count("event=segment_copied") >= 5)
        count, first, local, tiered = run(read, place, tools, RUN_SECONDS).split()
        assert (int(count), first) == (RECORDS, "orders:0:0")
        assert 0 < offset_in(local) <= offset_in(tiered) < RECORDS
        run(end, place, tools, RUN_SECONDS)
        wait_for_the_end(place / "broker.log")
        again = next(line for line in read.splitlines() if line.endswith(" earliest"))
        assert offset_in(run(again, place, tools, RUN_SECONDS)) == offset_in(local)


def offset_in(line: str) -> int:
    return int(line.rpartition(":")[2])


def wait_for_the_end(log: Path) -> None:
    ends = time.monotonic() + 60
    while "event=remote_segments_removed" not in log.read_text():
        assert time.monotonic() < ends, "the topic keeps its tier"
        time.sleep(0.1)
