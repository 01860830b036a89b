"""The same records from a live broker's files and over the wire; nothing that may not be read."""

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from pipeline.broker_client import BrokerClient
from pipeline.decode.schemas import ALL_COLUMNS, RECORDS
from pipeline.errors import BadOption, BrokerRefused, DataLost, NoConnection, NothingThere
from pipeline.sources import broker_views, wire_leader, wire_reading
from pipeline.sources.options import parse
from pipeline.sources.planning import plan_tasks, views_of
from pipeline.sources.reading import read_task
from protocol.errors import ErrorCode
from tests.support.patience import until
from tests.support.spark.pipeline_logs import HOUR_MS, NOON_MS, read_all
from tests.support.spark.pipeline_topics import jumping, leaderless, make_topic, options, produce
from tests.support.worlds.node_process import NodeProcess

NOT_OVER_THE_WIRE = {"segment", "position", "appendTime", "appendTimeBound"}


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_files_and_wire_give_the_same(node: NodeProcess, admin: AdminClient, codec: str) -> None:
    topic = make_topic(admin, 2, segment_bytes="1048576")
    produce(node, topic, jumping(300), **{"compression.type": codec})
    columns = [name for name in ALL_COLUMNS.names if name not in NOT_OVER_THE_WIRE]

    by_files = read_all(options(node, topic, mode="files"), columns)
    by_wire = read_all(options(node, topic, mode="wire", minPartitions="5"), columns)

    assert len(by_files) == 300
    assert by_files == by_wire
    with_headers = [row["headers"] for row in by_files if row["headers"]]
    assert len(with_headers) == 60
    assert with_headers[0] == [{"key": "trace", "value": b"x"}, {"key": "empty", "value": None}]


@pytest.mark.parametrize("mode", ["files", "wire"])
def test_ranges_of_times_are_exact(node: NodeProcess, admin: AdminClient, mode: str) -> None:
    topic = make_topic(admin, segment_bytes="1048576")
    times = [*jumping(200), NOON_MS + 10**9, *jumping(100)]
    produce(node, topic, times)
    for low in range(NOON_MS - HOUR_MS, NOON_MS + HOUR_MS, HOUR_MS // 7):
        bounds = {"startingTimestamp": str(low), "endingTimestamp": str(low + 30_000)}
        rows = read_all(options(node, topic, mode=mode, **bounds), ["offset"])
        wanted = [offset for offset, at in enumerate(times) if low <= at < low + 30_000]
        assert [row["offset"] for row in rows] == wanted


def test_a_search_by_another_clock_does_not_make_the_wire_lose_records(
    node: NodeProcess, admin: AdminClient
) -> None:
    topic = make_topic(admin, horolog_search_clock="arrival")
    times = [NOON_MS + HOUR_MS, NOON_MS]
    produce(node, topic, times)
    bounds = {"startingTimestamp": str(NOON_MS), "endingTimestamp": str(NOON_MS + 1)}

    rows = read_all(options(node, topic, mode="wire", **bounds), ["offset"])

    assert [row["offset"] for row in rows] == [1]


@pytest.mark.parametrize("mode", ["files", "wire"])
def test_records_of_open_and_aborted_transactions(
    node: NodeProcess, admin: AdminClient, mode: str
) -> None:
    topic = make_topic(admin)
    producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for value, is_kept in (("a", True), ("b", False), ("c", True), ("d", False)):
        producer.begin_transaction()
        for _ in range(3):
            producer.produce(topic, value)
        if is_kept:
            producer.commit_transaction(30)
        elif value == "b":
            producer.flush(30)
            producer.abort_transaction(30)
        else:
            producer.flush(30)

    def values(level: str) -> str:
        rows = read_all(options(node, topic, mode=mode, isolationLevel=level), ["value"])
        return "".join(row["value"].decode() for row in rows)

    assert values("read_committed") == "aaaccc"
    assert values("read_uncommitted") == "aaabbbcccddd"
    producer.abort_transaction(30)


def test_files_are_read_while_the_broker_writes_them(node: NodeProcess, admin: AdminClient) -> None:
    """Whatever is caught half-way lies behind the watermark; what was acknowledged is there."""
    topic = make_topic(admin, segment_bytes="1048576")
    is_over = threading.Event()

    def keep_writing() -> None:
        while not is_over.is_set():
            produce(node, topic, [NOON_MS] * 200)

    writer = threading.Thread(target=keep_writing)
    writer.start()
    seen = 0
    try:
        until(lambda: views_of(parse(options(node, topic)))[0].end_offset, "nothing was written")
        for _ in range(12):
            at_least = views_of(parse(options(node, topic)))[0].end_offset
            rows = read_all(options(node, topic, mode="files"), ["offset"])
            assert [row["offset"] for row in rows] == list(range(len(rows)))
            assert len(rows) >= at_least >= seen
            seen = at_least
    finally:
        is_over.set()
        writer.join()


def test_a_topic_that_was_made_again_is_not_taken_for_the_old_one(
    node: NodeProcess, admin: AdminClient
) -> None:
    topic = make_topic(admin)
    produce(node, topic, [NOON_MS] * 10)
    tasks = {mode: plan_tasks(parse(options(node, topic, mode=mode))) for mode in ("files", "wire")}
    admin.delete_topics([topic])[topic].result(30)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    produce(node, topic, [NOON_MS] * 20)

    for planned in tasks.values():
        with pytest.raises(DataLost, match="deleted"):
            [batch for task in planned for batch in read_task(task, RECORDS)]


def test_what_was_deleted_while_reading_is_told(node: NodeProcess, admin: AdminClient) -> None:
    topic = make_topic(admin)
    produce(node, topic, [NOON_MS] * 10)
    told, passed = (
        plan_tasks(parse(options(node, topic, mode="wire", failOnDataLoss=fails)))
        for fails in ("true", "false")
    )
    with BrokerClient(node.bootstrap) as client:
        from protocol.apis.delete_records import (
            DeleteRecordsPartition,
            DeleteRecordsRequest,
            DeleteRecordsTopic,
        )

        partition = DeleteRecordsPartition(partition_index=0, offset=6)
        wanted = DeleteRecordsTopic(name=topic, partitions=[partition])
        client.call(DeleteRecordsRequest(topics=[wanted], timeout_ms=30_000))

    with pytest.raises(DataLost, match=f"{topic}-0: offset 0 is not there; the log begins at 6"):
        [batch for task in told for batch in read_task(task, RECORDS)]
    left = [batch for task in passed for batch in read_task(task, RECORDS)]
    assert sum(batch.num_rows for batch in left) == 4


def test_a_broker_here_is_read_from_its_files_unless_told_otherwise(
    node: NodeProcess, admin: AdminClient
) -> None:
    topic = make_topic(admin)
    here = f"{node.facts['data_dir']}/{topic}-0"

    assert [view.directory for view in views_of(parse(options(node, topic)))] == [here]
    assert [view.directory for view in views_of(parse(options(node, topic, mode="wire")))] == [None]


def test_a_partition_without_a_leader_is_waited_for(
    node: NodeProcess, admin: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic(admin)
    produce(node, topic, [NOON_MS] * 5)
    monkeypatch.setattr(broker_views, "RETRY_SECONDS", 0.01)
    leaderless(monkeypatch, times=3)  # and then as it was before

    (view,) = views_of(parse(options(node, topic)))

    assert view.end_offset == 5
    monkeypatch.setattr(broker_views, "PATIENCE_SECONDS", 0.05)
    leaderless(monkeypatch, times=1000)
    with pytest.raises(BrokerRefused, match=f"{topic}-0 has no leader now"):
        views_of(parse(options(node, topic)))


def test_a_partition_that_nobody_asked_for_needs_no_leader(
    node: NodeProcess, admin: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither another one of the topic, nor one of a topic that the pattern does not take."""
    topic, other = make_topic(admin, 2), make_topic(admin)
    monkeypatch.setattr(broker_views, "PATIENCE_SECONDS", 0)
    receive = BrokerClient.receive

    def without(client: BrokerClient, api: Any, version: int, number: int) -> Any:
        answer = receive(client, api, version, number)
        for each in answer.topics if api.name == "Metadata" else ():
            if each.name == other:
                each.error_code = ErrorCode.LEADER_NOT_AVAILABLE
            for partition in each.partitions:
                if each.name == other or partition.partition_index == 1:
                    partition.leader_id = -1
        return answer

    monkeypatch.setattr(BrokerClient, "receive", without)
    there = {"kafka.bootstrap.servers": node.bootstrap}
    (view,) = views_of(parse({**there, "assign": f'{{"{topic}": [0]}}'}))
    assert (view.topic, view.partition) == (topic, 0)
    with pytest.raises(BrokerRefused, match=f"{topic}-1 has no leader now"):
        views_of(parse({**there, "subscribePattern": topic}))
    single = make_topic(admin)
    assert len(views_of(parse({**there, "subscribePattern": single}))) == 1


def test_mistakes_are_named(node: NodeProcess) -> None:
    with pytest.raises(NothingThere, match="the topic 'nowhere' is not on"):
        read_all(options(node, "nowhere"))
    with pytest.raises(BrokerRefused, match=r"no broker answers at 127\.0\.0\.1:1:"):
        read_all({"bootstrap": "127.0.0.1:1", "subscribe": "t"})
    with pytest.raises(BadOption, match="'nonsense' is no HOST:PORT"):
        read_all({"bootstrap": "nonsense", "subscribe": "t"})
    http = f"127.0.0.1:{node.facts['http'].rsplit(':', 1)[1]}"
    with pytest.raises(BrokerRefused, match="ApiVersions: "):
        read_all({"bootstrap": http, "subscribe": "t"})


def test_a_broker_that_goes_away_is_not_the_last_one_asked(
    node: NodeProcess, admin: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It accepts connections, and ends with the question."""
    topic = make_topic(admin)
    receive, left = BrokerClient.receive, iter(range(2))

    def ending(client: BrokerClient, api: Any, version: int, number: int) -> Any:
        if api.name == "Metadata" and next(left, None) is not None:
            raise NoConnection(f"{client.address}: gone")
        return receive(client, api, version, number)

    monkeypatch.setattr(BrokerClient, "receive", ending)
    several = ",".join([node.bootstrap] * 3)
    assert len(views_of(parse(options(node, topic) | {"kafka.bootstrap.servers": several}))) == 1


def test_a_read_goes_on_at_its_offset_when_leaders_go(
    node: NodeProcess, admin: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some answers to Fetch do not come, and some are of a broker that leads no more."""
    topic = make_topic(admin)
    produce(node, topic, jumping(200), **{"batch.num.messages": "10"})
    monkeypatch.setattr(wire_reading, "FETCH_BYTES", 2000)
    monkeypatch.setattr(wire_leader, "RETRY_SECONDS", 0.001)
    receive = BrokerClient.receive
    turns: Iterator[int] = itertools.count()

    def going(client: BrokerClient, api: Any, version: int, number: int) -> Any:
        turn = next(turns) if api.name == "Fetch" else 0
        if turn % 5 == 3:
            raise NoConnection(f"{client.address}: gone")
        answer = receive(client, api, version, number)
        if turn % 5 == 4:
            answer.responses[0].partitions[0].error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return answer

    monkeypatch.setattr(BrokerClient, "receive", going)
    rows = read_all(options(node, topic, mode="wire"), ["offset"])
    assert [row["offset"] for row in rows] == list(range(200))
    assert next(turns) > 10
    monkeypatch.setattr(wire_leader, "PATIENCE_SECONDS", 0.05)
    (task,) = plan_tasks(parse(options(node, topic, mode="wire", minPartitions="1")))
    turns = itertools.repeat(3)
    with pytest.raises(NoConnection, match="gone"):
        list(read_task(task, RECORDS))
