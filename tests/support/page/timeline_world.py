"""A broker of every state that the time page shows: what stays, goes, is late, or claims 2055.

Its clock stands still. Names of clients and groups are hostile ones: whoever shows them shows text.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.live_topic import PATIENCE, LiveBroker

HOUR, DAY = 3_600_000, 86_400_000
YEAR_2055 = 2_687_256_000_000
HOSTILE = "<img src=x onerror=document.title='owned'>\"'&\u202e"
TOPICS = ("orders", "pinned", "state", "empty", "kept")
NEXT_ROUND_MS = 240_000
SETTINGS = {"log.initial.task.delay.ms": str(8 * HOUR + NEXT_ROUND_MS)}


@contextmanager
def timeline_broker(data_dir: Path) -> Iterator[LiveBroker]:
    """A running one: five topics, eight hours of records, one group that is behind."""
    with start_broker(data_dir, SETTINGS, options=["--test-clock"]) as process:
        live = LiveBroker(process, data_dir)
        fill(live, process.bootstrap)
        yield live


def fill(live: LiveBroker, bootstrap: str) -> None:
    """Eight hours pass while records come."""
    small = {"internal_segment_bytes": "700"}
    orders = live.topic("orders", **small, retention_ms=str(5 * HOUR))
    pinned = live.topic(
        "pinned", **small, retention_ms=str(2 * HOUR), horolog_retention_clock="record",
        message_timestamp_after_max_ms=str(2**62),
    )  # fmt: skip
    state = live.topic(
        "state", **small, cleanup_policy="compact", max_compaction_lag_ms=str(3 * HOUR)
    )
    live.topic("empty")
    kept = live.topic("kept", **small, retention_ms="-1")
    from_2055 = Producer({"bootstrap.servers": bootstrap, "client.id": HOSTILE, "linger.ms": 0})
    from_2055.produce("pinned", b"late" * 50, partition=0, timestamp=YEAR_2055)
    assert from_2055.flush(PATIENCE) == 0
    for _ in range(16):
        now = live.now_ms
        for topic in (orders, pinned, state, kept):
            topic.produce(now - 1000)
        live.step("30m")
    orders.produce(1_500_000)  # seconds, or a clock that begins in 1970
    _commit(bootstrap, "orders", 3)


def _commit(bootstrap: str, topic: str, offset: int) -> None:
    """A group with a hostile name that has read so far."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": HOSTILE})
    consumer.commit(offsets=[Place(topic, 0, offset)], asynchronous=False)
    consumer.close()
