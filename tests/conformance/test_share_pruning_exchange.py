"""`__share_group_state` is kept short by us, kill -9 included, and by a real Kafka 4.3: each reads
all that counts in what the other one left.
"""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.conformance.test_consumer_group_differential import until
from tests.conformance.test_share_exchange import ACCEPT, RELEASE, read_some
from tests.conformance.test_share_offsets_differential import COMMON, KAFKA, OffsetsSide
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.worlds.broker_process import start_broker

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
OFTEN = {
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
    "share.coordinator.state.topic.prune.interval.ms": "1000",
    "share.coordinator.cold.partition.snapshot.interval.ms": "1000",
}


def log_start(bootstrap: str) -> int:
    """The first offset of what share groups remember."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "looks"})
    try:
        place = TopicPartition("__share_group_state", 0)
        low, _ = consumer.get_watermark_offsets(place, timeout=10)
    finally:
        consumer.close()
    return int(low)


def read_and_prune(bootstrap: str, side: OffsetsSide, count: int) -> int:
    """So many records are read and accepted; the first offset once the state has become shorter."""
    before = log_start(bootstrap)
    for _ in range(count):
        read_some(side, 1, ACCEPT)
    until(lambda: log_start(bootstrap) > before)
    return log_start(bootstrap)


def rest(side: OffsetsSide) -> object:
    return side._describe("rests", {"one": [0]})


RESTS = (0, [("one", "one", 0, 7, 3, 0)])
"""Of a group at offset 7 that does nothing."""


def test_each_reads_what_the_other_left(tmp_path: Path) -> None:
    directory = tmp_path / "data"

    with start_kafka(directory, KAFKA | OFTEN) as kafka:
        side = OffsetsSide(kafka.bootstrap)
        side.alter("rests", {"one": {0: 7}})
        side.alter("g", {"one": {0: 0}})
        starts = [read_and_prune(kafka.bootstrap, side, 3)]
        side.wire.close()

    with start_broker(directory, COMMON | OFTEN) as ours:
        side = OffsetsSide(ours.bootstrap, is_new=False)
        until(lambda side=side: rest(side) == RESTS)
        assert log_start(ours.bootstrap) >= starts[0]
        starts.append(read_and_prune(ours.bootstrap, side, 3))
        assert read_some(side, 1, RELEASE) == [(6, 6, 1)], "three were accepted on each of the two"
        side.wire.close()
        ours.kill()

    with start_kafka(directory, KAFKA | OFTEN) as kafka:
        side = OffsetsSide(kafka.bootstrap, is_new=False)
        until(lambda side=side: rest(side) == RESTS)
        assert log_start(kafka.bootstrap) >= starts[1]
        starts.append(read_and_prune(kafka.bootstrap, side, 2))
        side.wire.close()

    with start_broker(directory, COMMON | OFTEN) as ours:
        side = OffsetsSide(ours.bootstrap, is_new=False)
        until(lambda side=side: rest(side) == RESTS)
        assert read_some(side, 2, ACCEPT) == [(8, 9, 1)]
        side.wire.close()
    assert starts == sorted(set(starts))
