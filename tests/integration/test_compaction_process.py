"""The bound on compaction in real seconds, seen from outside: a partition where nothing happens."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol.records.builder import build_batch
from tests.support.clients.admin import Admin
from tests.support.worlds.watched_broker import WatchedBroker, produce_to

DELAY = "horolog_log_compaction_delay_seconds"
LAG_SECONDS, BACKOFF_SECONDS, CHECK_SECONDS = 2, 1, 1
PATIENCE_SECONDS = 30  # of a machine that does other things, too
TOPIC = {
    "cleanup_policy": "compact",
    "min_cleanable_dirty_ratio": "1.0",
    "max_compaction_lag_ms": str(LAG_SECONDS * 1000),
    "file_delete_delay_ms": "0",
}


def running(directory: Path, **settings: str) -> WatchedBroker:
    with_backoff = {"log.cleaner.backoff.ms": str(BACKOFF_SECONDS * 1000), **settings}
    return WatchedBroker(directory, with_backoff)


def fill(broker: WatchedBroker) -> None:
    """Two records of one key; the first is to go."""
    broker.make_topic("t", **TOPIC)
    now_ms = int(time.time() * 1000)
    with broker.client() as client:
        for value in (b"an old address", b"a new one"):
            assert produce_to(client, build_batch([(now_ms, b"key", value)])).error_code == 0


def compaction(broker: WatchedBroker) -> Any:
    (state,) = Admin(broker.process.facts["http"]).get("/api/topics/t/compaction")["partitions"]
    return state


def everything(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in (directory / "t-0").iterdir())


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[WatchedBroker]:
    with running(tmp_path / "data") as found:
        yield found


def test_an_idle_partition_meets_its_lag_within_one_check(
    broker: WatchedBroker, tmp_path: Path
) -> None:
    fill(broker)
    largest, end = 0.0, time.monotonic() + PATIENCE_SECONDS
    while compaction(broker)["first_dirty_offset"] != 2:
        assert time.monotonic() < end
        largest = max(largest, broker.metric(DELAY))
        time.sleep(0.05)
    waits = CHECK_SECONDS + BACKOFF_SECONDS + 2  # the tick looks once a second at both tasks
    assert largest < waits + PATIENCE_SECONDS / 6
    assert broker.metric(DELAY) == 0
    assert broker.metric("horolog_log_cleaner_runs_total") == 1
    assert 0 < broker.metric("horolog_log_cleaner_max_compaction_delay_seconds") < 10
    while b"an old address" in everything(tmp_path / "data"):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert b"a new one" in everything(tmp_path / "data")
    broker.check_unharmed()


def test_without_a_cleaner_it_rises_a_second_a_second(tmp_path: Path) -> None:
    with running(tmp_path / "data", **{"log.cleaner.enable": "false"}) as broker:
        fill(broker)
        broker.wait_for(DELAY, PATIENCE_SECONDS)
        first, began = broker.metric(DELAY), time.monotonic()
        time.sleep(3)
        risen, passed = broker.metric(DELAY) - first, time.monotonic() - began
        assert risen == pytest.approx(passed, abs=1)
        state = compaction(broker)
        assert state["overdue_ms"] > 3000
        assert state["blocked_by"] == "cleaner_off"
