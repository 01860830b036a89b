"""A topic that one record of 2055 keeps from ageing, on a broker whose clock stands still."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from broker.cli.main import main
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

START = "2026-03-01T12:00:00Z"
START_MS = 1_772_366_400_000
HOUR, YEAR = 3_600_000, 365 * 86_400_000


@contextmanager
def sensor_broker(directory: Path) -> Iterator[NodeProcess]:
    """A broker where it is a minute past noon, to the millisecond, with the topic `sensors`."""
    settings = {"log.initial.task.delay.ms": "0"}
    with start_broker(directory, settings, options=("--test-clock", START)) as node:
        http = ["--http", node.facts["http"], "--json"]
        assert main(["clock", "freeze", *http]) == 0
        assert main(["clock", "set", "2026-03-01T12:01:00Z", "--clock", "both", *http]) == 0
        _fill(node.bootstrap)
        yield node


def _fill(bootstrap: str) -> None:
    """Three segments of records from nine o'clock on; one in the first is dated 29 years ahead."""
    config = {
        "segment.bytes": "1048576",
        "horolog.retention.clock": "record",
        "horolog.timestamp.policy": "accept",
    }
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("sensors", 1, 1, config=config)])["sensors"].result(30)
    producer = Producer(
        {"bootstrap.servers": bootstrap, "client.id": "sensor-17", "linger.ms": 200}
    )
    for batch in range(26):
        for each in range(100):
            ms = START_MS - 3 * HOUR + (batch * 100 + each) * 1000
            if (batch, each) == (1, 7):
                ms = START_MS + 29 * YEAR
            producer.produce("sensors", key=b"k", value=bytes(1000), timestamp=ms)
        producer.flush(30)
