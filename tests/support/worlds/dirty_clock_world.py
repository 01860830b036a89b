"""Topics of a broker that a client with a dirty clock wrote to, as a real client reads them.

Topic `t` has two partitions: in the first the dirty client is there all the time, in the other it
comes late. Topic `c` is compacted; its keys change hands between both clients.
"""

import random
import shutil
import time
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
YEAR_MS = 365 * DAY_MS
SETTINGS = {
    "log.segment.bytes": str(1 << 20),
    "log.initial.task.delay.ms": str(DAY_MS),
    "log.cleaner.backoff.ms": str(DAY_MS),
    "horolog.timestamp.policy": "accept",
    "log.message.timestamp.after.max.ms": str(2**63 - 1),
    "group.initial.rebalance.delay.ms": "0",
}
GROUP = "readers"
COUNT = 2600
"""Of a partition of `t`: two segments and a half."""


class Row(NamedTuple):
    """A record as a client got it."""

    partition: int
    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None


class World(NamedTuple):
    """The directories and facts, once the broker has stopped."""

    data: Path
    rows: list[Row]
    """Of `t`, in the order of the log."""
    keyed: list[Row]
    """Of `c`."""
    began_ms: int
    ended_ms: int
    committed: dict[int, int]
    """By the group, of the partitions of `t`."""

    def of(self, partition: int) -> list[Row]:
        return [row for row in self.rows if row.partition == partition]


def make_world(folder: Path) -> World:
    """Written by clients, read by a client, and at rest."""
    data = folder / "data"
    began = _now()
    with start_broker(data, SETTINGS) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        made = admin.create_topics([NewTopic("t", 2, 1), NewTopic("c", 1, 1, config=compacted)])
        for each in made.values():
            each.result(30)
        _fill(node, began)
        rows, keyed = content(node, "t", 2), content(node, "c", 1)
        ended = _now()
        committed = {0: _first_ahead(rows, began).offset, 1: 2000}
        consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": GROUP})
        places = [TopicPartition("t", p, at) for p, at in committed.items()]
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()
    return World(data, rows, keyed, began, ended, committed)


def copied(world: World, folder: Path) -> Path:
    """The data directory, to be changed."""
    return Path(shutil.copytree(world.data, folder / "data"))


def content(node: NodeProcess, topic: str, partitions: int) -> list[Row]:
    """All records of a topic by partition and offset, through Kafka's own client library."""
    consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "content"})
    places = [TopicPartition(topic, number, 0) for number in range(partitions)]
    ends = [consumer.get_watermark_offsets(each, timeout=10)[1] for each in places]
    consumer.assign(places)
    rows, at = [], [0] * partitions
    while any(here < end for here, end in zip(at, ends, strict=True)):
        for message in consumer.consume(500, 0.1):
            assert not message.error(), message.error()
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            at[partition] = offset + 1
            rows.append(
                Row(partition, offset, message.timestamp()[1], message.key(), message.value())
            )
    consumer.close()
    return sorted(rows, key=lambda row: row[:2])


def _fill(node: NodeProcess, now: int) -> None:
    dice = random.Random(3)
    good, sensor = (
        Producer({"bootstrap.servers": node.bootstrap, "client.id": name, "linger.ms": 5})
        for name in ("good", "sensor-17")
    )
    for n in range(COUNT):
        for partition in range(2):
            is_dirty = n % 50 == 17 and (partition == 0 or n > COUNT // 2)
            at = _dirty(n // 50, now) if is_dirty else _good(n, now, dice)
            producer = sensor if is_dirty else good
            producer.produce("t", dice.randbytes(1000), b"k%d" % (n % 40), partition, timestamp=at)
        value = None if n % 40 == 3 else dice.randbytes(1000)
        keeper = sensor if n % 20 == 9 else good
        at = _dirty(n // 20, now) if keeper is sensor else _good(n, now, dice)
        keeper.produce("c", value, b"k%d" % (n % 90), 0, timestamp=at)
        if n % 25 == 0:  # the clients take turns
            assert not good.flush(30)
            assert not sensor.flush(30)
    assert not good.flush(30)
    assert not sensor.flush(30)


def _good(number: int, now: int, dice: random.Random) -> int:
    """Over the last two hours, in some disorder."""
    return now - 2 * HOUR_MS + number * 2 * HOUR_MS // COUNT - dice.randrange(MINUTE_MS)


def _dirty(number: int, now: int) -> int:
    """Decades ahead, in seconds, of 1970, a month back; in turn."""
    return (now + 29 * YEAR_MS + number, now // 1000, 5, now - 30 * DAY_MS)[number % 4]


def _first_ahead(rows: list[Row], now: int) -> Row:
    """The second record of partition 0 that is far ahead."""
    return [row for row in rows if row.partition == 0 and row.time_ms > now + YEAR_MS][1]


def _now() -> int:
    return time.time_ns() // 1_000_000
