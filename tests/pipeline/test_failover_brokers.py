"""`failover` between two brokers at work: crossed arrivals, a dirty clock, a group that moves over.

Each record is sent to both, to each after a time of its own, in real time. What the job says is
held against what real consumers got.
"""

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker.cli.main import main
from tests.support.kafka.kafka_oracle import available, run_tool
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TOPIC, GROUP = "t", "movers"
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "replica.high.watermark.checkpoint.interval.ms": "200",
    "log.initial.task.delay.ms": "86400000",
    "horolog.timestamp.policy": "accept",
    "log.message.timestamp.after.max.ms": str(2**63 - 1),
}
RECORDS, STEP_MS, CROSSED_MS = 2000, 5, 2000
"""Ten seconds of records; to each cluster a record takes up to two more.

At half time what is certain of an arrival lies up to a second back, the width of a zone."""
DAY_MS = 86_400_000
YEAR_MS = 365 * DAY_MS
DIRTY = {
    0: lambda at: at % 40 == 8,
    1: lambda at: at % 40 == 9 and at > RECORDS * 0.8,
}
"""In partition 0 the dirty client is there all the time; in the other it comes at the end."""


class Sent(NamedTuple):
    """A record: its name, and the time it claims as ms after the begin, or on a dirty clock."""

    number: int
    partition: int
    claimed_ms: int
    is_dirty: bool

    @property
    def name(self) -> bytes:
        return b"r%d" % self.number


class Clusters(NamedTuple):
    """Two brokers with the same records; what the group has read of the first."""

    first: NodeProcess
    other: NodeProcess
    read: Counter[bytes]
    committed: dict[int, int]
    sent: list[Sent]
    latency_ms: int
    """Of the first, at the most; without the dirty clock's."""


def story(began_ms: int) -> list[Sent]:
    """The records. A dirty clock is decades ahead; in partition 0 it is, in turn, a day behind."""
    made = []
    for at in range(RECORDS):
        partition, claimed = at % 2, began_ms + at * STEP_MS
        is_dirty = DIRTY[partition](at)
        if is_dirty:
            is_behind = partition == 0 and at // 40 % 2 and not _near_the_change(at)
            claimed += -DAY_MS if is_behind else 29 * YEAR_MS
        made.append(Sent(at, partition, claimed, is_dirty))
    return made


def _near_the_change(at: int) -> bool:
    """Whether the record may cross over the moment at which the group moves.

    Of such a one nobody can tell by a clock that is far behind that it is not an old one.
    """
    return abs(at - RECORDS // 2) * STEP_MS < 2 * CROSSED_MS


def send(
    sent: list[Sent], began_ms: int, nodes: tuple[NodeProcess, NodeProcess]
) -> tuple[dict[int, int], int]:
    """To both brokers, each record at its own moment, in the order of these.

    How many of each partition the first one had at half time, and its largest latency.
    """
    dice = random.Random(8)
    due = sorted(
        (each.number * STEP_MS + dice.randint(0, CROSSED_MS), which, each)
        for which in range(2)
        for each in sent
    )
    producers = [
        Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 0, "enable.idempotence": True})
        for node in nodes
    ]
    late = [0]
    for after, which, each in due:
        time.sleep(max(0.0, (began_ms + after) / 1000 - time.time()))
        known = partial(_note, late, each) if which == 0 and not each.is_dirty else None
        producers[which].produce(
            TOPIC, each.name, b"k%d" % (each.number % 9), partition=each.partition,
            timestamp=each.claimed_ms, on_delivery=known,
        )  # fmt: skip
        producers[which].poll(0)
    for producer in producers:
        assert producer.flush(30) == 0
    half = RECORDS // 2 * STEP_MS
    early = Counter(each.partition for after, which, each in due if not which and after < half)
    return dict(early), max(late)


def _note(late: list[int], record: Sent, error: Any, _: Any) -> None:
    assert error is None
    late.append(time.time_ns() // 1_000_000 - record.claimed_ms + 1)


def consume(
    consumer: Consumer, until: dict[int, int], begin: dict[int, int] | None = None
) -> Counter[bytes]:
    """What it gets of each partition up to before an offset; it begins where it should."""
    begin = dict(begin or dict.fromkeys(until, 0))
    at = dict(begin)
    found: Counter[bytes] = Counter()
    while any(at[p] < until[p] for p in until):
        message = consumer.poll(20)
        assert message is not None, f"{at} of {until}"
        assert not message.error(), message.error()
        place = message.partition()
        assert message.offset() >= begin[place]
        if message.offset() < until[place]:
            assert message.offset() == at[place]
            found[message.value()] += 1
            at[place] += 1
    return found


def client(node: NodeProcess, group: str = "by hand") -> Consumer:
    return Consumer({
        "bootstrap.servers": node.bootstrap, "group.id": group, "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    })  # fmt: skip


def member(node: NodeProcess) -> Consumer:
    """A member of the group that will have all partitions."""
    consumer = client(node, GROUP)
    consumer.subscribe([TOPIC])
    return consumer


def ends(node: NodeProcess) -> dict[int, int]:
    consumer = client(node)
    places = {p: TopicPartition(TOPIC, p) for p in (0, 1)}
    found = {p: consumer.get_watermark_offsets(at, timeout=10)[1] for p, at in places.items()}
    consumer.close()
    return found


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    folder = tmp_path_factory.mktemp("clusters")
    first, other = (folder / name / "data" for name in ("first", "other"))
    with start_broker(first, SETTINGS) as a, start_broker(other, SETTINGS) as b:
        a.facts["data_dir"] = str(first)
        for node in (a, b):
            admin = AdminClient({"bootstrap.servers": node.bootstrap})
            admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(30)
        began = time.time_ns() // 1_000_000 + 200
        sent = story(began)
        early, latency = send(sent, began, (a, b))
        reader = member(a)
        read = consume(reader, early)
        reader.commit(
            offsets=[TopicPartition(TOPIC, p, at) for p, at in early.items()], asynchronous=False
        )
        reader.close()
        yield Clusters(a, b, read, early, sent, latency)


def fail_over(
    clusters: Clusters, capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[int, dict[str, Any]]:
    """The job's answer, between two brokers at work."""
    asked = [
        "spark", "failover", "--from-dirs", clusters.first.facts["data_dir"], "--topic", TOPIC,
        "--from-bootstrap", clusters.first.bootstrap,
        "--to-bootstrap", clusters.other.bootstrap, "--group", GROUP, "--json", "--compare",
        "--max-latency", f"{clusters.latency_ms}ms", *more,
    ]  # fmt: skip
    status = main(asked)
    said = capsys.readouterr()
    assert said.out, said.err
    return status, json.loads(said.out)


def test_a_group_moves_over_and_misses_nothing(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    status, answer = fail_over(clusters, capsys)
    found = {row["partition"]: row for row in answer["partitions"]}
    assert {p: row["read_up_to"] for p, row in found.items()} == clusters.committed
    assert status == 0
    begin = {int(p): at for p, at in answer["offsets"][TOPIC].items()}
    assert 0 < begin[1] < clusters.committed[1], "a clock that is right costs few records twice"

    consumer = client(clusters.other)
    consumer.assign([TopicPartition(TOPIC, p, at) for p, at in begin.items()])
    then = consume(consumer, ends(clusters.other), begin)
    consumer.close()

    names = {each.name for each in clusters.sent}
    assert clusters.read.keys() | then.keys() == names
    assert sum(clusters.read.values()) == len(clusters.read)
    assert sum(then.values()) == len(then)
    assert sum(row["missed"] for row in found.values()) == 0
    twice = clusters.read.keys() & then.keys()
    for partition, row in found.items():
        mine = [each for each in clusters.sent if each.partition == partition]
        assert row["duplicates"] == sum(each.name in twice for each in mine)
    assert answer["max_latency_ms"] == clusters.latency_ms


def test_what_a_latency_told_too_small_would_miss_is_counted(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    status, answer = fail_over(clusters._replace(latency_ms=1), capsys)
    begin = {int(p): at for p, at in answer["offsets"][TOPIC].items()}
    consumer = client(clusters.other)
    consumer.assign([TopicPartition(TOPIC, p, at) for p, at in begin.items()])
    then = consume(consumer, ends(clusters.other), begin)
    consumer.close()
    missed = {each.name for each in clusters.sent} - clusters.read.keys() - then.keys()
    assert status == 10
    assert sum(row["missed"] for row in answer["partitions"]) == len(missed) > 0


@pytest.mark.kafka
@pytest.mark.skipif(not available(), reason="needs java and mvn")
def test_kafkas_own_tool_takes_the_plan(
    clusters: Clusters, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plan = tmp_path / "plan.csv"
    _, answer = fail_over(clusters, capsys, "--csv", str(plan))
    offsets = {int(p): at for p, at in answer["offsets"][TOPIC].items()}
    said = run_tool(
        GROUPS_TOOL, "--bootstrap-server", clusters.other.bootstrap, "--reset-offsets",
        "--group", GROUP, "--from-file", str(plan), "--execute",
    )  # fmt: skip
    assert GROUP in said
    admin = AdminClient({"bootstrap.servers": clusters.other.bootstrap})
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)])
    committed = asked[GROUP].result(30).topic_partitions
    assert {each.partition: each.offset for each in committed} == offsets
    consumer = member(clusters.other)
    then = consume(consumer, ends(clusters.other), offsets)
    consumer.close()
    assert clusters.read.keys() | then.keys() == {each.name for each in clusters.sent}
