"""`audit-time` and `latency` against plain Python over the same records, and against a broker."""

import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli.main import main
from pipeline.transforms import latency as latencies
from pipeline.transforms.histogram import buckets_of, count_into, quantile, upper_bound
from pipeline.transforms.latency import TopicLatency, merged
from pipeline.transforms.time_audit import READ, AuditBounds, PartitionAudit, Wrote, writers_of
from tests.integration.test_audit_stream import make, produce
from tests.support.worlds.broker_process import start_broker

NOW = 1_790_000_000_000
HOUR, DAY = 3_600_000, 86_400_000
BOUNDS = AuditBounds(HOUR, 7 * DAY, NOW)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=50))
def test_a_bucket_holds_its_values(values: list[int]) -> None:
    buckets = buckets_of(np.array(values, np.int64)).tolist()
    for value, bucket in zip(values, buckets, strict=True):
        bound = upper_bound(bucket)
        assert value <= bound + abs(bound) / 1000 + 1
        assert abs(value) >= abs(bound) * 0.85 - 2
    order = sorted(range(len(values)), key=lambda at: values[at])
    assert [buckets[at] for at in order] == sorted(buckets)


def test_quantiles_are_an_eighth_off_at_most_and_counts_add_up() -> None:
    dice = random.Random(2)
    values = [int(dice.lognormvariate(8, 2)) - 100 for _ in range(5000)]
    whole: Counter[int] = Counter()
    for at in range(0, 5000, 77):
        count_into(whole, np.array(values[at : at + 77], np.int64))
    assert sum(whole.values()) == 5000
    for share in (0.01, 0.5, 0.9, 0.999, 1.0):
        exact = sorted(values)[max(0, -(-int(share * 5000) // 1) - 1)]
        found = quantile(whole, share)
        assert found is not None
        assert abs(found - exact) <= abs(exact) / 8 + 2
    assert quantile({}, 0.5) is None


def records(count: int, seed: int) -> list[dict[str, Any]]:
    """With disorder, several producers, some times ahead, in seconds, missing; some unarrived."""
    dice = random.Random(seed)
    rows = []
    for n in range(count):
        arrived = NOW - DAY + n * 1000
        claimed = arrived - dice.randrange(0, 60_000)
        odd = dice.random()
        if odd < 0.03:
            claimed = dice.choice([arrived + 29 * 365 * DAY, arrived // 1000, -1, 0])
        rows.append({
            "offset": n, "createTimeMs": claimed, "producerId": dice.choice([-1, 7]),
            "appendTime": None if dice.random() < 0.1 else arrived * 1000,
            "key": b"k%d" % (n % 5),
        })  # fmt: skip
    return rows


def audited(rows: list[dict[str, Any]], step: int = 97) -> dict[str, Any]:
    audit = PartitionAudit("t", 0)
    for at in range(0, len(rows), step):
        audit.add(pa.RecordBatch.from_pylist(rows[at : at + step], READ), BOUNDS)
    return audit.as_json()


def test_an_audit_is_what_plain_python_counts() -> None:
    rows = records(3000, 1)
    found = audited(rows)
    latest, late, worst, outliers = None, 0, 0, 0
    for row in rows:
        claimed = row["createTimeMs"]
        since = NOW if row["appendTime"] is None else row["appendTime"] // 1000
        good = 0 <= claimed <= since + HOUR
        outliers += not (good and claimed >= since - 7 * DAY)
        if good:
            latest = claimed if latest is None else max(latest, claimed)
            late += claimed < latest
            worst = max(worst, latest - claimed)
    assert (found["late_records"], found["max_lateness_ms"]) == (late, worst)
    assert found["outliers"] == outliers > 0
    for clock in found["producers"]:
        mine = [row for row in rows if row["producerId"] == clock["producer_id"]]
        known = [
            row["appendTime"] // 1000 - row["createTimeMs"]
            for row in mine
            if row["appendTime"] is not None and row["createTimeMs"] != -1
        ]
        assert clock["records"] == len(mine)
        assert (clock["skew_min_ms"], clock["skew_max_ms"]) == (min(known), max(known))
        assert clock["without_time"] == sum(row["createTimeMs"] == -1 for row in mine)
    assert set(found["producers"][0]["outliers"]) <= {
        "future: bound", "past: seconds", "past: zero", "none",
    }  # fmt: skip
    assert all(each["skew_ms"] < -HOUR for each in found["future"])
    assert found["future"][0]["time_ms"] > NOW
    assert audited(rows, step=7) == found, "batches do not matter"


def test_a_client_is_found_by_its_offsets() -> None:
    rows = [
        Wrote("t", 0, 0, 99, "good", "a", 50, 0),
        Wrote("t", 0, 40, 60, "bad", "b", 20, 20),
        Wrote("t", 1, 0, 99, "other", "c", 50, 50),
    ]
    assert writers_of(rows, "t", 0, 50) == [("bad", "b"), ("good", "a")]
    assert writers_of(rows, "t", 0, 10) == [("good", "a")]
    assert writers_of(rows, "t", 0, 500) == []


def test_latency_is_what_plain_python_counts() -> None:
    rows = records(4000, 3)
    parts = []
    for at in range(0, 4000, 500):
        part = TopicLatency("t")
        picked = [{n: row[n] for n in latencies.READ.names} for row in rows[at : at + 500]]
        part.add(pa.RecordBatch.from_pylist(picked, latencies.READ), BOUNDS)
        parts.append(part)
    (whole,) = merged(parts)
    taken = [
        row["appendTime"] // 1000 - row["createTimeMs"]
        for row in rows
        if row["appendTime"] is not None and row["createTimeMs"] >= 0
    ]
    inside = [each for each in taken if -HOUR <= each <= 7 * DAY]
    assert whole.max_latency(1) == max(inside)
    assert whole.outside == len(taken) - len(inside) > 0
    answer = whole.as_json(0.5)
    assert answer["records"] == len(inside) == sum(h["records"] for h in answer["hours"])
    assert abs(answer["max_latency_ms"] - sorted(inside)[len(inside) // 2]) < 5000
    assert len(answer["hours"]) == 2


def test_the_clients_with_bad_clocks_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = time.time_ns() // 1_000_000
    data, page = tmp_path / "data", tmp_path / "report.html"
    with start_broker(data, {"horolog.audit.topic": "horolog.audit"}) as node:
        make(node.bootstrap, "t", horolog_timestamp_policy="accept")
        produce(node.bootstrap, "t", "good", [now - 5000] * 40)
        produce(node.bootstrap, "t", "sensor-17", [now + 29 * 365 * DAY] * 3)
        produce(node.bootstrap, "t", "good", [now - 9000] * 20)
    asked = ["--log-dirs", str(data), "--topic", "t", "--html", str(page)]
    audit = ["spark", "audit-time", *asked, "--audit-topic", "horolog.audit"]
    assert main([*audit, "--json"]) == 10
    found = json.loads(capsys.readouterr().out)
    (partition,) = found["partitions"]
    assert found["outliers"] == partition["outliers"] == 3
    assert [each["offset"] for each in partition["future"]] == [40, 41, 42]
    assert all("sensor-17@127.0.0.1" in each["clients"] for each in partition["future"])
    assert partition["late_records"] == 20
    assert partition["max_lateness_ms"] == 4000
    assert (found["clients"][0]["client_id"], found["clients"][0]["dirty"]) == ("sensor-17", 3)
    assert page.read_text().count("<svg") == 2
    assert main([*audit, "--limit", "3"]) == 0
    assert "sensor-17" in capsys.readouterr().out
    assert main(["spark", "latency", *asked, "--json"]) == 0
    (topic,) = json.loads(capsys.readouterr().out)["topics"]
    assert (topic["records"], topic["outside"]) == (60, 3)
    assert 9000 <= topic["max_latency_ms"] < 60_000
    assert "<svg" in page.read_text()
    assert main(["spark", "latency", *asked, "--limit", "5s"]) == 10
