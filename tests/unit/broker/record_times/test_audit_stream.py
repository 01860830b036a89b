"""The sums of the audit stream: what is added up, what waits unwritten, how many there may be."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.record_times import audit_stream as module
from broker.record_times.audit_stream import AuditStream
from broker.runtime.principals import ANONYMOUS
from protocol.errors import ErrorCode, KafkaError
from storage.segment.log_snapshot import AppendResult
from storage.timestamps import Direction, Suspicion
from storage.validation.dirty_timestamps import Action, DirtyFinding, DirtyTimes
from tests.support.disk.simenv import SimClock

FUTURE = DirtyTimes(
    0, (DirtyFinding(Direction.FUTURE, Suspicion.BOUND, Action.ACCEPTED, 2, 0, 1, 9, 0),)
)


class Stream(AuditStream):
    """Writes into a list, unless the topic refuses."""

    def __init__(self) -> None:
        super().__init__(cast("Any", self), SimClock())
        self.name = "audit"
        self.rows: list[dict[str, Any]] = []
        self.refuses = 0

    async def append(self, rows: Any) -> None:
        if self.refuses:
            self.refuses -= 1
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no")
        self.rows += [json.loads(value) for _, value in rows]


def result(base: int, last: int, skew: int, dirty: DirtyTimes | None = None) -> AppendResult:
    return AppendResult(base, last, -1, 0, False, last + 1, False, skew, dirty)


def partition(topic: str = "t", number: int = 0) -> Any:
    return SimpleNamespace(log=SimpleNamespace(topic=topic, partition=number))


def sender(name: str) -> Any:
    return SimpleNamespace(client_id=name, client_host="h", principal=ANONYMOUS)


async def test_appends_of_a_client_to_a_partition_are_one_row() -> None:
    stream = Stream()
    stream.stored(partition(), sender("a"), result(0, 9, 5), 10, 100)
    stream.stored(partition(), sender("a"), result(15, 19, -7, FUTURE), 5, 50)
    stream.stored(partition(), sender("b"), result(10, 14, 1), 5, 50)
    stream.refused(partition(), sender("a"), FUTURE)
    await stream.flush()
    first, second = stream.rows
    assert (first["client_id"], first["first"], first["last"]) == ("a", 0, 19)
    assert (first["records"], first["batches"], first["bytes"]) == (15, 2, 150)
    assert (first["skew_min_ms"], first["skew_max_ms"]) == (-7, 5)
    assert first["dirty"] == {"future: bound: accepted": 4}
    assert (second["client_id"], second["dirty"]) == ("b", {})
    await stream.flush()
    assert len(stream.rows) == 2, "each append is in one row"


async def test_what_cannot_be_written_waits_and_is_added_up() -> None:
    stream = Stream()
    stream.refuses = 2
    stream.refused(partition(), sender("a"), FUTURE)
    await stream.flush()
    stream.stored(partition(), sender("a"), result(0, 9, 5), 10, 100)
    stream.stored(partition(), sender("b"), result(10, 10, 1), 1, 10)
    await stream.flush()
    stream.stored(partition(), sender("a"), result(11, 12, 8, FUTURE), 2, 20)
    await stream.flush()
    rows = {row["client_id"]: row for row in stream.rows}
    assert len(stream.rows) == 2
    assert (rows["a"]["first"], rows["a"]["last"], rows["a"]["records"]) == (0, 12, 12)
    assert (rows["a"]["skew_min_ms"], rows["a"]["skew_max_ms"]) == (5, 8)
    assert rows["a"]["dirty"] == {"future: bound: accepted": 4}
    assert rows["b"]["records"] == 1


async def test_clients_beyond_a_bound_count_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ROWS", 3)
    monkeypatch.setattr(module, "ROWS_A_BATCH", 2)
    stream = Stream()
    for n in range(10):
        stream.stored(partition(), sender(f"c{n}"), result(n, n, 0), 1, 1)
    await stream.flush()
    rows = {row["client_id"]: row for row in stream.rows}
    assert set(rows) == {"c0", "c1", "c2", "others"}
    assert (rows["others"]["records"], rows["others"]["address"]) == (7, "")
    assert sum(row["records"] for row in rows.values()) == 10
