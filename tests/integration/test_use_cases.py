"""The five use cases of KIP-33's table, each told with plain client code against a running broker.

A consumer that rewinds without loss, a topic that is filled with history, a move to another
cluster, lag in time, and the latency up to the broker. Kafka's table gives each of them to one of
two clocks; here every topic has both, so each takes the better one (README, "Why is it still
here?"). The clock stands still, so that each story has its numbers.
"""

from collections.abc import Iterator
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.live_topic import PATIENCE, LiveBroker, LiveTopic

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
FILLING = bytes(5000)  # the arrival of records is kept for every 4 KiB of the log
NOWHERE = -1  # librdkafka's answer for "after the last record": the end of the partition


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    data_dir = tmp_path_factory.mktemp("cases") / "data"
    with start_broker(data_dir, options=["--test-clock", "2024-02-28T12:00:00Z"]) as process:
        live = LiveBroker(process, data_dir)
        yield live
        live.consumer.close()


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    """Another cluster."""
    data_dir = tmp_path_factory.mktemp("elsewhere") / "data"
    with start_broker(data_dir, options=["--test-clock", "2024-02-28T12:00:00Z"]) as process:
        live = LiveBroker(process, data_dir)
        yield live
        live.consumer.close()


def values_from(topic: LiveTopic, offset: int, count: int) -> list[bytes]:
    """What a consumer reads that starts at that offset."""
    consumer: Consumer = topic.broker.consumer
    consumer.assign([TopicPartition(topic.name, 0, offset)])
    values: list[bytes] = []
    while len(values) < count:
        message = consumer.poll(PATIENCE)
        assert message is not None, f"silence after {values}"
        values.append(message.value() or b"")
    consumer.unassign()
    return values


def metrics_of(broker: LiveBroker) -> str:
    """What Prometheus scrapes."""
    with urlopen(f"http://{broker.http.address}/metrics", timeout=PATIENCE) as answer:
        text: str = answer.read().decode()
    return text


# -- 1. Search by time, and lose nothing


def test_a_consumer_rewinds_to_a_record_time_and_misses_nothing(broker: LiveBroker) -> None:
    """All that happened since noon is to be read again. Records came out of order."""
    topic = broker.topic("orders")
    noon = broker.now_ms
    happened = (-5, -1, 2, -2, 3, 1, 4)  # minutes from noon, in order of arrival
    for minutes in happened:
        topic.produce(noon + minutes * MINUTE, str(minutes).encode())

    start = topic.offset_at(noon)

    assert values_from(topic, start, 5) == [b"2", b"-2", b"3", b"1", b"4"]
    missed = [minutes for minutes in happened[:start] if minutes >= 0]
    assert missed == []  # some are read again (-2), none is left out


def test_a_consumer_rewinds_to_the_moment_of_an_outage_whatever_the_records_claim(
    broker: LiveBroker,
) -> None:
    """What reached us since the alarm is a question of arrival; a client's clock is a year off."""
    topic = broker.topic("meters", message_timestamp_after_max_ms=str(DAY * 1000))
    topic.produce(broker.now_ms + 365 * DAY, b"of next year" + FILLING)
    topic.produce(broker.now_ms, b"before the alarm" + FILLING)
    broker.step("10m")
    alarm = broker.now_ms
    topic.produce(alarm - HOUR, b"late" + FILLING)
    broker.step("1s")
    topic.produce(broker.now_ms, b"in time" + FILLING)

    assert topic.offset_at(alarm) == 0, "by record time the one of next year answers everything"
    topic.set("horolog.search.clock", "arrival")
    since = values_from(topic, topic.offset_at(alarm), 2)
    assert [value.rstrip(FILLING) for value in since] == [b"late", b"in time"]
    topic.set("horolog.search.clock", "earlier")
    assert topic.offset_at(alarm) == 3, "the late one claims an earlier time"
    assert topic.offset_at(alarm + MINUTE) == NOWHERE


# -- 2. Bootstrap: history is loaded now, and keeps its dates


def test_history_that_is_loaded_today_is_found_and_expires_by_its_own_dates(
    broker: LiveBroker,
) -> None:
    """Ten days of readings are loaded in one go into a topic that keeps seven."""
    topic = broker.topic("readings", retention_ms=str(7 * DAY), internal_segment_bytes="300")
    now = broker.now_ms
    for age in range(10, -1, -1):
        topic.produce(now - age * DAY, f"{age} days ago".encode() * 20)

    assert topic.offset_at(now - 2 * DAY) == 8, "the place of two days ago, not of the loading"
    broker.step("6m")  # a round of retention
    kept = [message.value().split(b"days")[0] for message in topic.records()]
    assert kept == [b"%d " % age for age in range(6, -1, -1)]


def test_history_stays_a_while_for_those_who_have_to_read_it_first(broker: LiveBroker) -> None:
    """The same, but nothing may go sooner than two days after it was loaded."""
    topic = broker.topic(
        "archive",
        retention_ms=str(7 * DAY),
        internal_segment_bytes="300",
        horolog_retention_min_stay_ms=str(2 * DAY),
    )
    for age in (30, 20, 1):
        topic.produce(broker.now_ms - age * DAY)
    broker.step("1d")
    assert len(topic.records()) == 3
    broker.step("25h")
    assert len(topic.records()) == 1


# -- 3. Failover: a consumer goes on in another cluster, where offsets are others


def test_a_consumer_fails_over_to_a_mirror_by_the_time_of_what_it_read_last(
    broker: LiveBroker, elsewhere: LiveBroker
) -> None:
    """The mirror lags up to a minute (MaxLatencyOfCluster); so far back the consumer goes."""
    same = max(broker.now_ms, elsewhere.now_ms)
    for each in (broker, elsewhere):
        each.http.post("/api/clock/set", to=same, clock="both")
    topic, mirror = broker.topic("payments"), elsewhere.topic("payments")
    mirror.produce(broker.now_ms - HOUR, b"only here, so offsets differ")
    for number in range(6):
        at = broker.now_ms
        topic.produce(at, b"%d" % number)
        told = mirror.produce(at, b"%d" % number)
        assert told[1] == at, "a mirror keeps record times"
        broker.step("30s")
        elsewhere.step("30s")
    last_read = topic.records()[3]

    latency = MINUTE
    start = mirror.offset_at(last_read.timestamp()[1] - latency)
    values = values_from(mirror, start, 5)

    read_before = [b"%d" % number for number in range(4)]
    assert [value for value in values if value not in read_before] == [b"4", b"5"]
    repeated = [value for value in values if value in read_before]
    assert repeated == [b"1", b"2", b"3"], "no more is read again than the latency makes needful"


def test_the_latency_that_failover_needs_is_measured(broker: LiveBroker) -> None:
    """Nobody has to guess MaxLatencyOfCluster: the broker has seen how late records came."""
    topic = broker.topic("mirrored")
    for late in (2 * SECOND, 40 * SECOND, 5 * SECOND):
        topic.produce(broker.now_ms - late)
    (skew,) = broker.http.get("/api/topics/mirrored/time/skew")["partitions"]
    assert skew["records"] == 3
    assert skew["most_ms"] == 40 * SECOND


# -- 4. Lag in time: how far behind is a consumer


def test_how_long_ago_the_next_record_of_a_consumer_came(broker: LiveBroker) -> None:
    """A consumer has read one of three. By arrival: minutes; by what records claim: days."""
    topic = broker.topic("jobs")
    for _ in range(3):
        topic.produce(broker.now_ms - 3 * DAY, FILLING)
        broker.step("10m")
    position = 1

    ask = "/api/topics/jobs/time/lookup"
    (first,) = broker.http.get(ask, timestamp=broker.now_ms - 20 * MINUTE, clock="arrival")[
        "partitions"
    ]
    assert first["found"]["offset"] == position, "what came 20 minutes ago is not read yet"
    assert broker.now_ms - first["found"]["arrival_time"]["ms"] == 20 * MINUTE
    assert broker.now_ms - first["found"]["record_time"]["ms"] == 3 * DAY + 20 * MINUTE


def test_a_consumer_that_is_abreast_has_nothing_ahead(broker: LiveBroker) -> None:
    """Nothing came since then: that is an answer with a proof, not a guess from an empty poll."""
    topic = broker.topic("quiet")
    topic.produce(broker.now_ms)
    since = broker.now_ms + 1
    broker.step("1h")
    ask = {"from": since, "to": broker.now_ms + 1, "clock": "arrival"}
    (found,) = broker.http.get("/api/topics/quiet/time/range", **ask)["partitions"]
    assert found["is_empty"]
    assert found["records"] == 0


# -- 5. Latency up to the broker


def test_latency_up_to_the_broker_per_topic(broker: LiveBroker) -> None:
    """Arrival minus record time: one producer's batches are a second old when they come."""
    topic = broker.topic("clicks")
    for _ in range(4):
        topic.produce(broker.now_ms - SECOND)
    topic.produce(broker.now_ms - 5 * MINUTE)

    bucket = 'horolog_timestamp_skew_seconds_bucket{le="%s",topic="clicks"} %.1f'
    text = metrics_of(broker)
    assert bucket % ("1.0", 4) in text
    assert bucket % ("+Inf", 5) in text


def test_the_producer_is_told_when_the_broker_wrote_its_record(broker: LiveBroker) -> None:
    """With LogAppendTime the answer carries the time of arrival, and the record keeps it."""
    topic = broker.topic("audit", message_timestamp_type="LogAppendTime")
    kind, at = topic.produce(broker.now_ms - 7 * SECOND)
    assert at == broker.now_ms
    (message,) = topic.records()
    assert message.timestamp() == (kind, at)
