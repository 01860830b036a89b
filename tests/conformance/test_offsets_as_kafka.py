"""What ListOffsets tells readers of committed records, beside a real Kafka 4.3."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from protocol.apis import list_offsets
from tests.conformance.conftest import create_topic
from tests.support.clients.wire import WireClient
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.patience import until
from tests.support.worlds.broker_process import start_broker

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
LATEST, EARLIEST, LARGEST = -1, -2, -3
FIRST_MS = 1_700_000_000_000
KEEP = {"log.retention.ms": "-1"}
OPEN_MS = FIRST_MS + 9000
"""Time of the record in the open transaction; others are earlier."""


class Side(NamedTuple):
    """A broker."""

    bootstrap: str
    wire: WireClient

    def told(self, topic: str, timestamp: int, *, committed: bool) -> tuple[int, int, int]:
        query = list_offsets.ListOffsetsPartition(
            partition_index=0, timestamp=timestamp, current_leader_epoch=-1
        )
        asked = list_offsets.ListOffsetsTopic(name=topic, partitions=[query])
        request = list_offsets.ListOffsetsRequest(
            replica_id=-1, isolation_level=int(committed), topics=[asked]
        )
        found = self.wire.call(request, 7).topics[0].partitions[0]
        return found.error_code, found.timestamp, found.offset

    def all_told(self, topic: str) -> list[tuple[int, int, int]]:
        return [
            self.told(topic, timestamp, committed=committed)
            for timestamp in (LATEST, EARLIEST, LARGEST, FIRST_MS + 1, OPEN_MS - 1, OPEN_MS + 1)
            for committed in (False, True)
        ]

    def is_stable(self, topic: str, offset: int) -> bool:
        """True once all below is decided: markers are written after the end is answered."""
        return self.told(topic, LATEST, committed=True)[2] == offset


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    base: Path = tmp_path_factory.mktemp("offsets")
    with ExitStack() as stack:
        found = []
        for node in (start_kafka(base / "kafka", KEEP), start_broker(base / "ours", KEEP)):
            running = stack.enter_context(node)
            host, _, port = running.bootstrap.rpartition(":")
            found.append(Side(running.bootstrap, stack.enter_context(WireClient(host, int(port)))))
        yield found[0], found[1]


def write(producer: Producer, topic: str, *times: int) -> None:
    for at in times:
        producer.produce(topic, b"v", timestamp=at, partition=0)
    assert producer.flush(30) == 0


def story(side: Side, topic: str, *, commit: bool) -> list[list[tuple[int, int, int]]]:
    """Two records, one in a transaction that stays open, one behind it."""
    create_topic(AdminClient({"bootstrap.servers": side.bootstrap}), topic)
    plain = Producer({"bootstrap.servers": side.bootstrap, "linger.ms": 0})
    write(plain, topic, FIRST_MS, FIRST_MS + 2000)
    found = [side.all_told(topic)]
    inside = Producer({"bootstrap.servers": side.bootstrap, "transactional.id": topic})
    inside.init_transactions(60)
    inside.begin_transaction()
    write(inside, topic, OPEN_MS)
    write(plain, topic, FIRST_MS + 1000)
    found.append(side.all_told(topic))
    (inside.commit_transaction if commit else inside.abort_transaction)(60)
    until(lambda: side.is_stable(topic, 5))
    assert side.told(topic, LARGEST, committed=True)[2] == 4, "the marker, of today"
    return found


@pytest.mark.parametrize("commit", [True, False])
def test_what_an_open_transaction_hides(sides: tuple[Side, Side], commit: bool) -> None:
    kafka, ours = (story(each, f"hidden-{commit}", commit=commit) for each in sides)
    assert ours == kafka
    nothing = (0, -1, -1)
    assert ours[1][5] == nothing, "the largest time"
