"""`replay` between two topics of a broker: times, keys, headers, partitions; the range is exact."""

import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker.cli.main import main
from pipeline.broker_client import BrokerClient
from protocol.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.support.worlds.node_process import NodeProcess

HOUR = 3_600_000


def make(admin: AdminClient, name: str, **config: str) -> None:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(name, 2, 1, config=settings)])[name].result(30)


def fill(bootstrap: str, topic: str, now: int) -> None:
    """A record an hour back for each of a hundred, in no order."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for n in range(200):
        when = now - n * 37 % 100 * HOUR
        producer.produce(
            topic, b"v%d" % n, b"k%d" % (n % 5), timestamp=when, partition=n % 2,
            headers=[("n", b"%d" % n)],
        )  # fmt: skip
    producer.flush(30)


def content(bootstrap: str, topic: str) -> list[tuple[Any, ...]]:
    """Partition, time, key, value and headers of all records."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test"})
    consumer.assign([TopicPartition(topic, p, 0) for p in range(2)])
    left = sum(
        consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10)[1] for p in range(2)
    )
    found = []
    while len(found) < left:
        message = consumer.poll(10)
        assert message is not None, f"{len(found)} of {left}"
        assert not message.error()
        found.append(
            (message.partition(), message.timestamp()[1], message.key(), message.value(),
             tuple(message.headers() or ()))
        )  # fmt: skip
    consumer.close()
    return found


def test_a_range_is_copied_with_all_that_a_record_has(
    node: NodeProcess, admin: AdminClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = time.time_ns() // 1_000_000
    make(admin, "replay-from")
    make(admin, "replay-to")
    fill(node.bootstrap, "replay-from", now)
    asked = [
        "spark", "replay", "--bootstrap", node.bootstrap, "--topic", "replay-from",
        "--to", node.bootstrap, "--to-topic", "replay-to", "--same-partitions", "--json",
        "--compression", "lz4", "--state", str(tmp_path / "state"),
        "--from-ms", str(now - 70 * HOUR), "--until-ms", str(now - 10 * HOUR),
    ]  # fmt: skip
    assert main(asked) == 0
    answer = json.loads(capsys.readouterr().out)
    source = content(node.bootstrap, "replay-from")
    wanted = [row for row in source if now - 70 * HOUR <= row[1] < now - 10 * HOUR]
    assert answer["records"] == len(wanted) == 120
    copied = content(node.bootstrap, "replay-to")
    for partition in range(2):
        assert [row for row in copied if row[0] == partition] == [
            row for row in wanted if row[0] == partition
        ]
    assert main(asked) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 0, "the state says that it is done"
    assert len(content(node.bootstrap, "replay-to")) == 120


@pytest.fixture(scope="module")
def stated(node: NodeProcess, admin: AdminClient) -> None:
    """The topic that `replay` copies: 200 records."""
    make(admin, "stated")
    fill(node.bootstrap, "stated", time.time_ns() // 1_000_000)


def replay(
    node: NodeProcess,
    capsys: pytest.CaptureFixture[str],
    to: str,
    state: Path,
    *more: str,
    topic: str = "stated",
) -> tuple[int, str]:
    """The exit status; the records that were written, or what the error says."""
    status = main([
        "spark", "replay", "--bootstrap", node.bootstrap, "--topic", topic, "--to",
        node.bootstrap, "--to-topic", to, "--state", str(state), "--json", *more,
    ])  # fmt: skip
    said = capsys.readouterr()
    return status, str(json.loads(said.out)["records"]) if said.out else said.err


@pytest.mark.usefixtures("stated")
def test_the_state_knows_the_target(
    node: NodeProcess, admin: AdminClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for to in ("state-one", "state-two"):
        make(admin, to)
        assert replay(node, capsys, to, tmp_path) == (0, "200")
        assert replay(node, capsys, to, tmp_path) == (0, "0")
    admin.delete_topics(["state-one"])["state-one"].result(30)
    make(admin, "state-one")
    assert replay(node, capsys, "state-one", tmp_path) == (0, "200"), "it was made again"
    assert len(content(node.bootstrap, "state-one")) == 200


@pytest.mark.usefixtures("stated")
def test_the_state_knows_the_range(
    node: NodeProcess, admin: AdminClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(admin, "state-range")
    now = time.time_ns() // 1_000_000
    wide = ["--from-ms", str(now - 70 * HOUR)]
    narrow = ["--from-ms", str(now - 20 * HOUR)]
    assert replay(node, capsys, "state-range", tmp_path, *narrow)[0] == 0
    for other in (wide, [], [*narrow, "--until-ms", str(now)], [*narrow, "--same-partitions"]):
        status, said = replay(node, capsys, "state-range", tmp_path, *other)
        assert status == 2, other
        assert f"was begun with --from-ms {now - 20 * HOUR}" in said
    assert replay(node, capsys, "state-range", tmp_path, *narrow) == (0, "0")
    assert replay(node, capsys, "state-range", tmp_path / "other", *wide)[1] != "0"


@pytest.mark.usefixtures("stated")
def test_a_stretch_of_time_begins_where_the_first_run_began(
    node: NodeProcess, admin: AdminClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(admin, "state-last")
    asked = (node, capsys, "state-last", tmp_path, "--last", "30h")
    status, first = replay(*asked)
    assert (status, replay(*asked)) == (0, (0, "0"))
    (noted,) = tmp_path.glob("to-*/stated/range.json")
    low = json.loads(noted.read_text())["low_ms"]
    time.sleep(0.01)
    for partition in noted.parent.glob("[0-9].json"):
        partition.unlink()  # as if it had been stopped before
    status, again = replay(*asked)
    assert (status, again) == (0, first)
    assert json.loads(noted.read_text())["low_ms"] == low
    assert replay(*asked[:-1], "31h")[0] == 2


def test_what_went_between_two_runs_is_told(
    node: NodeProcess, admin: AdminClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(admin, "cut")
    fill(node.bootstrap, "cut", time.time_ns() // 1_000_000)
    make(admin, "state-gap")
    again = partial(replay, node, capsys, "state-gap", tmp_path, topic="cut")
    assert again()[0] == 0
    (zero,) = tmp_path.glob("to-*/cut/0.json")
    noted = json.loads(zero.read_text())
    delete_records(node, "cut", 60)
    zero.write_text(json.dumps({**noted, "next": 40, "records": 40}))
    status, said = again()
    assert status == 3
    assert "cut-0: offsets from 40 to before 60 went before they were copied" in said
    assert again("--allow-loss") == (0, "40")
    zero.write_text(json.dumps({**noted, "next": 500}))
    status, said = again()
    assert status == 3
    assert "was copied up to 500 and ends at 100 now" in said


def delete_records(node: NodeProcess, topic: str, offset: int) -> None:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    wanted = DeleteRecordsTopic(name=topic, partitions=[partition])
    with BrokerClient(node.bootstrap) as client:
        client.call(DeleteRecordsRequest(topics=[wanted], timeout_ms=30_000))


@pytest.mark.usefixtures("stated")
def test_a_state_that_does_not_know_its_target_is_refused(
    node: NodeProcess, admin: AdminClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(admin, "state-old")
    (tmp_path / "stated-0.json").write_text('{"topic_id": "", "next": 90, "records": 90}')
    status, said = replay(node, capsys, "state-old", tmp_path)
    assert status == 2
    assert "stated-0.json is of an earlier version" in said


def test_the_last_days_go_by_the_records_own_times_and_no_faster_than_told(
    node: NodeProcess, admin: AdminClient, capsys: pytest.CaptureFixture[str]
) -> None:
    now = time.time_ns() // 1_000_000
    make(admin, "dump")
    make(admin, "loaded")
    fill(node.bootstrap, "dump", now)
    asked = [
        "spark", "replay", "--log-dirs", node.facts["data_dir"], "--bootstrap", node.bootstrap,
        "--topic", "dump", "--to", node.bootstrap, "--to-topic", "loaded", "--last", "30h",
        "--json", "--rate", "100",
    ]  # fmt: skip
    began = time.monotonic()
    assert main(asked) == 0
    took = time.monotonic() - began
    expected = sorted(
        row[1:] for row in content(node.bootstrap, "dump") if row[1] >= now - 30 * HOUR
    )
    found = sorted(row[1:] for row in content(node.bootstrap, "loaded"))
    assert len(expected) - len(found) in {0, 2}, "the clock has moved on since"
    assert set(found) <= set(expected)
    assert took >= len(found) / 100 - 0.1
    assert json.loads(capsys.readouterr().out)["records"] == len(found)


def test_times_are_not_lost_by_mistake(
    node: NodeProcess, admin: AdminClient, capsys: pytest.CaptureFixture[str]
) -> None:
    make(admin, "plain")
    make(admin, "stamping", message_timestamp_type="LogAppendTime")
    asked = ["spark", "replay", "--bootstrap", node.bootstrap, "--topic", "plain"]
    asked += ["--to", node.bootstrap]
    for more, said in (
        (["--to-topic", "stamping"], "stamps records"),
        ([], "into itself"),
        (["--to-topic", "stamping", "--last", "1h", "--from-ms", "5"], "in two ways"),
    ):
        assert main([*asked, *more]) == 2
        assert said in capsys.readouterr().err
    assert main([*asked, "--to-topic", "stamping", "--allow-log-append-time"]) == 0
