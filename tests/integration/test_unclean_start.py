"""A start after an unclean stop tells what that has cost, and which partitions take no writes."""

from pathlib import Path
from urllib.request import urlopen

import pytest

from protocol.errors import ErrorCode as Code
from tests.support.worlds.watched_broker import WatchedBroker, produce_to, small_batch, sum_of

BATCHES, GARBAGE = 20, b"\x05" * 50


@pytest.fixture
def harmed(tmp_path: Path) -> Path:
    """A directory whose first partition has a changed byte, and whose second one a torn end."""
    data_dir = tmp_path / "data"
    with WatchedBroker(data_dir, log=tmp_path / "first") as broker:
        broker.make_topic("t", 2)
        with broker.client() as client:
            for partition in (0, 1):
                for _ in range(BATCHES):
                    produce_to(client, small_batch(), partition=partition)
    (data_dir / ".kafka_cleanshutdown").unlink()
    first, second = (data_dir / f"t-{each}/{0:020d}.log" for each in (0, 1))
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 1  # of the offset of a batch, which no checksum covers
    first.write_bytes(data)
    second.write_bytes(second.read_bytes() + GARBAGE)
    return data_dir


def lines_of(broker: WatchedBroker, name: str) -> list[str]:
    return [line for line in broker.log_text.splitlines() if f"event={name} " in line]


def offline_by_kafkas_names(broker: WatchedBroker) -> list[float]:
    with urlopen(f"http://{broker.process.facts['http']}/metrics/kafka") as answer:
        text = answer.read().decode()
    names = "replicamanager_offlinereplicacount", "kafkacontroller_offlinepartitionscount"
    places = "kafka_server_", "kafka_controller_"
    return [sum_of(text, place + name) for place, name in zip(places, names, strict=True)]


def test_what_was_cut_and_what_is_damaged_are_told(harmed: Path, tmp_path: Path) -> None:
    with WatchedBroker(harmed, log=tmp_path / "log") as broker, broker.client() as client:
        (line,) = lines_of(broker, "logs_recovered")
        assert "level=warning" in line
        assert line.endswith(f"logs=2 cut_logs=1 cut_bytes={len(GARBAGE)} most_cut=t-1")
        (line,) = lines_of(broker, "log_damaged")
        assert "level=error" in line
        assert "log=t-0" in line
        assert "is damaged (its offsets are out of order)" in line
        assert broker.metric("horolog_recovery_cut_bytes") == len(GARBAGE)
        for partition, offline in ((0, 1), (1, 0)):
            labels = {"topic": "t", "partition": str(partition)}
            assert broker.metric("horolog_log_offline", **labels) == offline
        assert offline_by_kafkas_names(broker) == [1, 1]
        assert produce_to(client, small_batch()).error_code == Code.KAFKA_STORAGE_ERROR
        taken = produce_to(client, small_batch(), partition=1)
        assert (taken.error_code, taken.base_offset) == (0, BATCHES)
        broker.check_unharmed()
    with WatchedBroker(harmed, log=tmp_path / "again") as again:
        assert "level=info" in lines_of(again, "logs_recovered")[0]
        assert lines_of(again, "log_damaged")


def test_a_kill_alone_costs_nothing(tmp_path: Path) -> None:
    with WatchedBroker(tmp_path / "data", log=tmp_path / "first") as broker:
        broker.make_topic("t")
        with broker.client() as client:
            produce_to(client, small_batch())
        broker.process.kill()
    with WatchedBroker(tmp_path / "data", log=tmp_path / "log") as again:
        (line,) = lines_of(again, "logs_recovered")
        assert "level=info" in line
        assert line.endswith('logs=1 cut_logs=0 cut_bytes=0 most_cut=""')
        assert not lines_of(again, "log_damaged")
