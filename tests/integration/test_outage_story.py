"""The outage behind KIP-33, and its mirror, from a plain producer to the answer of an operator.

One record dated years ahead goes to a topic with seven days of retention: by Kafka's rule it keeps
the disk for years. And seconds sent as milliseconds: acknowledged, then deleted at the next round.
"""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from broker.cli.main import main
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.live_topic import LiveBroker, LiveTopic

DAY, YEAR = 86_400_000, 365 * 86_400_000
WEEK = {"retention_ms": str(7 * DAY), "internal_segment_bytes": "300"}
BY_RECORD = {"horolog_retention_clock": "record"}
ACCEPT = {"horolog_timestamp_policy": "accept"}
A_ROUND = "6m"  # of retention


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    data_dir = tmp_path_factory.mktemp("outage") / "data"
    with start_broker(data_dir, options=["--test-clock", "2024-02-28T12:00:00Z"]) as process:
        live = LiveBroker(process, data_dir)
        settings = {"bootstrap.servers": process.bootstrap, "linger.ms": 0}
        live.producer = Producer({**settings, "batch.num.messages": 1, "client.id": "sensor-17"})
        yield live
        live.consumer.close()


def a_day_with_one_record_of_the_future(topic: LiveTopic) -> int:
    """Three records, the first of them dated 29 years ahead; that date."""
    future = topic.broker.now_ms + 29 * YEAR
    for at in (future, topic.broker.now_ms, topic.broker.now_ms):
        assert topic.produce(at)[1] == at, "acknowledged as it was sent"
    return future


def start_of(topic: LiveTopic) -> int:
    """The log start offset."""
    found = topic.broker.http.get(f"/api/topics/{topic.name}/segments")["partitions"][0]
    start: int = found["log_start_offset"]
    return start


# -- the future


def test_by_kafkas_rule_one_record_keeps_the_disk_and_the_broker_says_who_and_until_when(
    broker: LiveBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = broker.topic("pinned", **WEEK, **BY_RECORD, **ACCEPT)
    future = a_day_with_one_record_of_the_future(topic)
    broker.step("30d")
    assert start_of(topic) == 0, "nothing went in a month"

    (partition,) = broker.http.get("/api/topics/pinned/segments")["partitions"]
    blocker = partition["blocker"]
    assert blocker["reason"] == "in_the_future"
    assert blocker["offset"] == 0
    assert blocker["until"]["ms"] == future + 7 * DAY
    (client,) = blocker["clients"]
    assert (client["client_id"], client["address"]) == ("sensor-17", "127.0.0.1")
    assert partition["overdue_count"] == 2, "those behind it are due and wait"
    ways = partition["segments"][0]["retention"]["frees"]
    assert {"set", "wait"} <= {way["how"] for way in ways}

    capsys.readouterr()
    assert main(["segments", "pinned", "--http", broker.http.address]) == 0
    told = capsys.readouterr().out
    assert "its time lies in the future" in told
    assert "client 'sensor-17' at 127.0.0.1" in told
    assert "set horolog.retention.clock=earlier: it goes at the next round" in told

    topic.set("horolog.retention.clock", "earlier")
    broker.step(A_ROUND)
    assert start_of(topic) == 3, "as it was told"


def test_by_the_default_clock_nothing_is_pinned(broker: LiveBroker) -> None:
    topic = broker.topic("default-clock", **WEEK, **ACCEPT)
    a_day_with_one_record_of_the_future(topic)
    broker.step("6d")
    assert start_of(topic) == 0, "nothing goes too soon either"
    broker.step("25h")
    assert start_of(topic) == 3


def test_by_the_default_policy_the_producer_is_told_at_once(broker: LiveBroker) -> None:
    topic = broker.topic("default-policy", **WEEK, **BY_RECORD)
    assert topic.produce(broker.now_ms + 29 * YEAR) == "INVALID_TIMESTAMP"
    assert topic.produce(broker.now_ms)[1] == broker.now_ms


def test_with_quarantine_the_record_is_set_aside_with_its_reason(broker: LiveBroker) -> None:
    settings = {**WEEK, **BY_RECORD, "internal_segment_bytes": "600"}
    topic = broker.topic("clean", **settings, horolog_timestamp_policy="quarantine")
    future = a_day_with_one_record_of_the_future(topic)
    came = broker.now_ms

    (message,) = LiveTopic(broker, "clean.quarantine").records()
    headers = dict(message.headers())
    assert message.timestamp()[1] == came
    assert headers["horolog.claimed.timestamp"] == b"%d" % future
    assert headers["horolog.reason"] == b"future: bound"
    assert headers["horolog.origin.topic"] == b"clean"
    assert headers["horolog.origin.offset"] == b"0"
    assert headers["horolog.client.id"] == b"sensor-17"
    assert [message.offset() for message in topic.records()] == [1, 2]
    broker.step("8d")
    assert start_of(topic) == 3, "and nothing is pinned"


# -- the mirror: seconds sent as milliseconds


def test_by_kafkas_rule_what_was_acknowledged_is_deleted_at_the_next_round(
    broker: LiveBroker,
) -> None:
    topic = broker.topic("lost", **WEEK, **BY_RECORD)
    seconds = broker.now_ms // 1000
    assert topic.produce(seconds)[1] == seconds, "acknowledged"
    broker.step(A_ROUND)
    assert start_of(topic) == 1, "and gone"

    (client,) = broker.http.get("/api/dirty", topic="lost")["clients"]
    assert client["client_id"] == "sensor-17"
    assert (client["direction"], client["reason"]) == ("expired", "seconds")
    (event,) = [line for line in log_of(broker) if "topic=lost" in line][:1]
    assert "seconds" in event


def test_a_minimum_stay_keeps_what_was_acknowledged_until_somebody_has_looked(
    broker: LiveBroker,
) -> None:
    topic = broker.topic("kept", **WEEK, horolog_retention_min_stay_ms=str(3 * DAY))
    topic.produce(broker.now_ms // 1000)
    broker.step("2d")
    assert start_of(topic) == 0
    (segment, *_) = broker.http.segments("kept")
    assert segment["retention"]["reason"] == "min_stay"
    broker.step("25h")
    assert start_of(topic) == 1


def test_with_a_bound_the_producer_hears_that_it_looks_like_seconds(
    broker: LiveBroker,
) -> None:
    topic = broker.topic("bounded", **WEEK, message_timestamp_before_max_ms=str(YEAR))
    assert topic.produce(broker.now_ms // 1000) == "INVALID_TIMESTAMP"
    (client,) = broker.http.get("/api/dirty", topic="bounded")["clients"]
    assert (client["direction"], client["reason"], client["action"]) == (
        "past",
        "seconds",
        "rejected",
    )


def test_restamped_it_stays_a_week_and_tells_what_it_claimed(broker: LiveBroker) -> None:
    topic = broker.topic(
        "restamped",
        **WEEK,
        message_timestamp_before_max_ms=str(YEAR),
        horolog_timestamp_policy="restamp",
    )
    seconds = broker.now_ms // 1000
    topic.produce(seconds)
    (message,) = topic.records()
    assert message.timestamp()[1] == broker.now_ms
    assert dict(message.headers())["horolog.claimed.timestamp"] == b"%d" % seconds
    broker.step("6d")
    assert start_of(topic) == 0


def log_of(broker: LiveBroker) -> list[str]:
    """The lines of the broker's log."""
    return broker.data_dir.with_name("data.log").read_text().splitlines()
