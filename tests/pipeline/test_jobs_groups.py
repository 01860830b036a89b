"""`lag` and `failover`: groups of a real broker; two clusters with crossed arrivals."""

import json
import random
import time
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from broker.cli.main import main
from pipeline.jobs.lag import lags
from pipeline.transforms.failover import compare
from pipeline.transforms.group_offsets import Committed, GroupPlace, rate
from pipeline.transforms.lag import Lag
from storage.posix import real_env
from tests.integration.test_audit_stream import make, produce
from tests.support.records.logs import append, open_log
from tests.support.spark.pipeline_topics import make_topic
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

HOUR = 3_600_000


def run(capsys: pytest.CaptureFixture[str], *asked: str) -> tuple[int, Any]:
    status = main(["spark", *asked, "--json"])
    return status, json.loads(capsys.readouterr().out)


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_the_lag_of_groups_in_records_and_in_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    began = time.time_ns() // 1_000_000
    with start_broker(data) as node:
        make(node.bootstrap, "t")
        produce(node.bootstrap, "t", "p", [began - 5 * HOUR] * 40)
        commit(node.bootstrap, "slow", "t", 5)
        time.sleep(0.05)
        commit(node.bootstrap, "slow", "t", 10)
        commit(node.bootstrap, "done", "t", 40)
    ended = time.time_ns() // 1_000_000
    now = ended + HOUR
    status, found = run(capsys, "lag", "--log-dirs", str(data), "--now", str(now))
    assert status == 0
    lags = {each["group"]: each for each in found["lags"]}
    slow, done = lags["slow"], lags["done"]
    assert (slow["committed"], slow["end_offset"], slow["records"]) == (10, 40, 30)
    assert HOUR <= slow["by_arrival_ms"] <= HOUR + (ended - began)
    assert slow["by_record_ms"] == now - (began - 5 * HOUR)
    assert slow["consumed_a_second"] > 0
    assert slow["catches_up_ms"] > 0
    assert (done["records"], done["by_arrival_ms"], done["catches_up_ms"]) == (0, None, 0)
    asked = ["lag", "--log-dirs", str(data), "--now", str(now), "--limit"]
    assert run(capsys, *asked, "30m")[0] == 10
    assert run(capsys, *asked, "2h")[0] == 0
    assert run(capsys, *asked, "30m", "--group", "done")[0] == 0
    assert main(["spark", "lag", "--log-dirs", str(data)]) == 0
    assert "slow" in capsys.readouterr().out


def test_a_topic_that_is_elsewhere_hides_no_lag(tmp_path: Path) -> None:
    """As in the directory of one of several Kafka brokers."""
    log = open_log(real_env(), path=str(tmp_path / "t-0"))
    append(log, 1000, 2000, 3000)
    log.close()
    read = deque([Committed(1, 5000)])
    commits = {GroupPlace("g", topic, 0): read for topic in ("elsewhere", "t", "zone")}

    (lag,) = lags(commits, str(tmp_path), None, 9000)

    assert (lag.topic, lag.records) == ("t", 2)


def test_rates_and_when_a_group_has_caught_up() -> None:
    assert rate([Committed(0, 0), Committed(50, 500), Committed(100, 1000)]) == 100
    assert rate([Committed(5, 10)]) is None
    lag = Lag("g", "t", 0, 0, 100, 100, None, None, 50.0, 30.0, 0)
    assert lag.catches_up_ms == 5000
    assert lag._replace(produced_a_second=50.0).catches_up_ms is None
    assert lag._replace(consumed_a_second=None).catches_up_ms is None


def test_what_has_just_come_is_not_as_old_as_it_says() -> None:
    fresh = Lag("g", "t", 0, 0, 1, 1, 0, 50 * HOUR, None, None, 0)
    assert not fresh.is_alarming(1000)
    assert fresh._replace(by_arrival_ms=None).is_alarming(1000)
    assert not fresh._replace(by_record_ms=-5, by_arrival_ms=None).is_alarming(0)


def test_a_commit_beyond_the_end_is_told(
    node: NodeProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    make(node.bootstrap, "again")
    produce(node.bootstrap, "again", "p", [time.time_ns() // 1_000_000] * 20)
    commit(node.bootstrap, "stuck", "again", 15)
    asked = ["lag", "--log-dirs", node.facts["data_dir"], "--bootstrap", node.bootstrap]
    asked += ["--topic", "again", "--limit", "1h"]
    assert (run(capsys, *asked)[1])["lags"][0]["beyond"] == 0
    commit(node.bootstrap, "stuck", "again", 50)
    status, found = run(capsys, *asked)
    (lag,) = found["lags"]
    assert (status, lag["records"], lag["beyond"]) == (10, 0, 30)
    moved = [
        "failover", "--from-dirs", node.facts["data_dir"], "--from-bootstrap", node.bootstrap,
        "--to-bootstrap", node.bootstrap, "--topic", "again", "--group", "stuck",
        "--max-latency", "1s",
    ]  # fmt: skip
    assert main(["spark", *moved]) == 3
    assert "was read up to 50 and ends at 20 now" in capsys.readouterr().err


def test_markers_alone_are_nothing_to_be_read(
    node: NodeProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    make(node.bootstrap, "marked")
    producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "marked"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("marked", b"v")
    producer.commit_transaction(30)
    commit(node.bootstrap, "reader", "marked", 1)
    later = str(time.time_ns() // 1_000_000 + HOUR)
    status, found = run(
        capsys, "lag", "--log-dirs", node.facts["data_dir"], "--bootstrap", node.bootstrap,
        "--topic", "marked", "--now", later, "--limit", "1m",
    )  # fmt: skip
    (lag,) = found["lags"]
    assert (lag["records"], lag["by_arrival_ms"], status) == (1, None, 0)


def test_partitions_that_the_group_never_read_come_whole(
    node: NodeProcess, admin: AdminClient, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = make_topic(admin, 2)
    produce(node.bootstrap, topic, "p", [time.time_ns() // 1_000_000] * 40)
    commit(node.bootstrap, "half", topic, 1)
    status, found = run(
        capsys, "failover", "--from-dirs", node.facts["data_dir"], "--from-bootstrap",
        node.bootstrap, "--to-bootstrap", node.bootstrap, "--topic", topic, "--group", "half",
        "--max-latency", "1h",
    )  # fmt: skip
    assert status == 0
    assert found["offsets"][topic]["1"] == 0


def cluster(folder: Path, arrivals: list[tuple[int, int]]) -> None:
    """A cluster with the records (arrival, claimed time), in the order of arrival."""
    log = open_log(real_env(), path=str(folder / "t-0"), segment_bytes=2000)
    for _, claimed in sorted(arrivals):
        append(log, claimed, key=b"%d" % claimed, value=b"v%d" % claimed)
    log.close()


def test_crossed_arrivals_are_not_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each record takes its own time to each of two clusters; a consumer changes over."""
    start, latency = 1_700_000_000_000, 5000
    for seed in range(4):
        dice = random.Random(seed)
        times = [start + n * 300 for n in range(150)]
        one, two = tmp_path / f"{seed}-one", tmp_path / f"{seed}-two"
        first = [(at + dice.randint(0, latency), at) for at in times]
        cluster(one, first)
        cluster(two, [(at + dice.randint(0, 20_000), at) for at in times])
        read = dice.randint(20, 120)
        status, found = run(
            capsys, "failover", "--from-dirs", str(one), "--to-dirs", str(two), "--topic", "t",
            "--offsets", json.dumps({"t": {"0": read}}), "--max-latency", "5s", "--compare",
        )  # fmt: skip
        (partition,) = found["partitions"]
        offset = found["offsets"]["t"]["0"]
        assert (status, partition["missed"]) == (0, 0)
        assert 0 < offset < read
        seen = {claimed for _, claimed in sorted(first)[:read]}
        coming = claimed_in(two, offset)
        assert set(times) - seen <= set(coming), "nothing is missed"
        assert partition["duplicates"] == len([each for each in coming if each in seen])


def claimed_in(folder: Path, offset: int) -> list[int]:
    from tests.support.spark.pipeline_logs import read_all

    rows = read_all({"log_dirs": str(folder), "subscribe": "t"}, ["offset", "timestampMs"])
    return [row["timestampMs"] for row in rows if row["offset"] >= offset]


def test_a_latency_told_too_small_is_found_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = 1_700_000_000_000
    late = (start + 60_000, start + 10)
    cluster(tmp_path / "one", [*((start + n * 1000, start + n * 1000) for n in range(50)), late])
    cluster(
        tmp_path / "two",
        [*((start + n * 1000, start + n * 1000) for n in range(50)), (1, start + 10)],
    )
    asked = [
        "failover", "--from-dirs", str(tmp_path / "one"), "--to-dirs", str(tmp_path / "two"),
        "--topic", "t", "--offsets", '{"t": {"0": 50}}', "--compare", "--max-latency",
    ]  # fmt: skip
    status, found = run(capsys, *asked, "1s")
    assert (status, found["partitions"][0]["missed"]) == (10, 1)
    plan = tmp_path / "plan.csv"
    status, found = run(capsys, *asked, "60s", "--csv", str(plan))
    assert (status, found["partitions"][0]["missed"]) == (0, 0)
    assert plan.read_text() == "t,0,0\n"
    assert main(["spark", *asked, "60s", "--csv", str(tmp_path / "none" / "plan.csv")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_records_are_told_by_what_a_producer_gave() -> None:
    assert compare("aab", "bc", "c", "ab") == (2, 1)


def test_mistakes_are_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster(tmp_path / "one", [(1, 1)])
    asked = [
        "spark", "failover", "--from-dirs", str(tmp_path / "one"), "--to-dirs",
        str(tmp_path / "one"), "--topic", "t", "--max-latency", "1s",
    ]  # fmt: skip
    for more in ([], ["--offsets", "5"], ["--offsets", "{}", "--group", "g"], ["--group", "g"]):
        assert main([*asked, *more]) == 2, more
        assert capsys.readouterr().err.count("\n") == 1
    assert main(["spark", "lag", "--log-dirs", str(tmp_path / "one")]) == 2


def test_the_lag_on_a_broker_at_work(node: NodeProcess, capsys: pytest.CaptureFixture[str]) -> None:
    began = time.time_ns() // 1_000_000
    make(node.bootstrap, "tail")
    produce(node.bootstrap, "tail", "p", [began - HOUR] * 400)
    time.sleep(1.2)  # a zone closes
    produce(node.bootstrap, "tail", "p", [began - HOUR] * 400)
    commit(node.bootstrap, "behind", "tail", 700)
    asked = ["--log-dirs", node.facts["data_dir"], "--bootstrap", node.bootstrap, "--topic", "tail"]
    _, found = run(capsys, "lag", *asked, "--group", "behind")
    (lag,) = found["lags"]
    assert (lag["end_offset"], lag["records"]) == (800, 100)
    assert lag["by_record_ms"] >= HOUR
    if lag["by_arrival_ms"] is not None:  # as soon as the zone is in the file
        assert lag["by_arrival_ms"] <= found["now_ms"] - began
