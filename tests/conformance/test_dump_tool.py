"""Kafka's DumpLogSegments accepts every file that the broker wrote."""

import re
from pathlib import Path

import pytest

from storage.posix import real_env
from storage.producers.producer_snapshots import save
from storage.producers.producer_state import ProducerStates
from tests.conformance.conftest import NO_RETENTION, start_node
from tests.conformance.variety import RECENT_TOPIC, everything, fill
from tests.support.kafka.kafka_oracle import DUMP_TOOL, available, run_tool

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
PARTITION = re.compile(r"(?!__)[a-z-]+-\d+")  # topics that people made, neither stray nor deleted
COMPLAINT = re.compile(
    r"mismatch|out of order|non-consecutive|not a valid|isvalid: false|invalid bytes|corrupt",
    re.IGNORECASE,
)


def files(directory: Path, *kinds: str) -> str:
    """Files of those kinds in all partitions of ours, as the tool wants them named."""
    found = [
        str(path)
        for kind in kinds
        for path in sorted(directory.glob(f"*-*/*.{kind}"))
        if PARTITION.fullmatch(path.parent.name)
    ]
    assert found, f"no {kinds} under {directory}"
    return ",".join(found)


@pytest.fixture(scope="module", params=["stopped", "killed"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory full of topics, after a clean stop; in one case there was a kill in between."""
    directory = tmp_path_factory.mktemp("dump") / "data"
    with start_node(directory, NO_RETENTION) as node:
        topics = fill(node.bootstrap)
        if request.param == "killed":
            node.kill()
    if request.param == "killed":
        with start_node(directory, NO_RETENTION) as node:
            everything(node.bootstrap, topics)
    return directory


def test_every_log_is_valid_record_by_record(written: Path) -> None:
    dump = run_tool(DUMP_TOOL, "--deep-iteration", "--files", files(written, "log"))
    assert not COMPLAINT.findall(dump)
    batches = [line for line in dump.splitlines() if line.startswith("baseOffset")]
    assert all("isvalid: true" in line for line in batches)
    counts = sum(int(count) for count in re.findall(r" count: (\d+) ", dump))
    assert counts == len(re.findall(r"^\| offset: ", dump, re.MULTILINE)) > 14_000


def test_every_index_agrees_with_its_log(written: Path) -> None:
    indexes = files(written, "index", "timeindex")
    assert "offset: " in run_tool(DUMP_TOOL, "--files", indexes)
    verdict = run_tool(DUMP_TOOL, "--verify-index-only", "--files", indexes)
    assert not COMPLAINT.findall(verdict)


def test_every_index_is_sane(written: Path) -> None:
    indexes = files(written, "index", "timeindex").split(",")
    verdict = run_tool(DUMP_TOOL, "--index-sanity-check", "--files", ",".join(indexes))
    fine = re.findall(r"^(\S+) (?:passed sanity check|is empty)\.$", verdict, re.MULTILINE)
    assert fine == indexes


def test_every_producer_snapshot_is_read(written: Path) -> None:
    dump = run_tool(DUMP_TOOL, "--files", files(written, "snapshot"))
    assert not COMPLAINT.findall(dump)
    newest = max((written / f"{RECENT_TOPIC}-0").glob("*.snapshot"))
    assert re.search(
        r"producerId: \d+ producerEpoch: 0", run_tool(DUMP_TOOL, "--files", str(newest))
    )


def test_a_producer_of_unknown_sequence_is_one_without_a_batch(tmp_path: Path) -> None:
    states = ProducerStates()
    states.log_start_offset = 20
    states.end_transaction(9, 2, 0, 20, 500, is_aborted=False)
    path = save(real_env().fs, str(tmp_path), states)
    dump = run_tool(DUMP_TOOL, "--files", path)
    assert not COMPLAINT.findall(dump)
    assert re.search(r"producerId: 9 producerEpoch: 2 .*lastTimestamp: 500", dump), dump
    assert "lastSequence" not in dump
