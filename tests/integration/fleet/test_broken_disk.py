"""A node of a fleet whose disk fails while it serves: others lead its partitions, by themselves."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker.runtime.exit_status import NOT_DURABLE
from tests.support.disk.power_disk import PoweredDisk, powered_disk, why_not
from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.patience import until
from tests.support.tier.s3_server import S3Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PARTITIONS, EACH = 8, 50


@pytest.fixture(params=["ext4", "xfs"])
def disk(request: pytest.FixtureRequest) -> Iterator[PoweredDisk]:
    reason = why_not(request.param)
    if reason is not None:
        pytest.skip(reason)
    with powered_disk(request.param) as made:
        yield made


@pytest.fixture
def fleet(
    disk: PoweredDisk, both: tuple[PostgresServer, S3Server], tmp_path: Path
) -> Iterator[FleetOfBrokers]:
    """Two nodes, the first one of which is on the disk."""
    (tmp_path / "node-1").symlink_to(disk.path)
    with some_brokers(tmp_path, both, (1, 2)) as brokers:
        brokers.wait_until_even()
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        admin.create_topics([NewTopic("t", PARTITIONS)])["t"].result(30)
        yield brokers


def produce(fleet: FleetOfBrokers, name: str) -> None:
    """Some records to each partition, all acknowledged."""
    heard: list[KafkaError | None] = []
    producer = Producer(
        {"bootstrap.servers": fleet.bootstrap, "topic.metadata.refresh.interval.ms": 1000}
    )
    for number in range(EACH):
        for partition in range(PARTITIONS):
            producer.produce(
                "t", f"{name}-{number}", partition=partition,
                on_delivery=lambda error, _: heard.append(error),
            )  # fmt: skip
    assert producer.flush(90) == 0
    assert heard == [None] * (EACH * PARTITIONS)


def values_of(fleet: FleetOfBrokers, partition: int, count: int) -> list[str]:
    reader = Consumer({"bootstrap.servers": fleet.bootstrap, "group.id": "reader"})
    reader.assign([TopicPartition("t", partition, 0)])
    found: list[str] = []

    def read() -> bool:
        found.extend((each.value() or b"").decode() for each in reader.consume(count, 1.0))
        return len(found) >= count

    until(read, "records are missing", seconds=60)
    reader.close()
    return found


def test_what_a_broken_disk_had_is_led_by_another_node(
    fleet: FleetOfBrokers, disk: PoweredDisk
) -> None:
    produce(fleet, "before")
    disk.cut()
    produce(fleet, "after")
    broken = fleet.running.pop(1)
    until(lambda: not broken.running, "it goes on", seconds=60)
    assert broken.stop() == NOT_DURABLE
    log = broken.log.read_text()
    assert "event=fleet_disk_failed" in log
    assert "Traceback" not in log
    expected = [f"{name}-{number}" for name in ("before", "after") for number in range(EACH)]
    for partition in range(PARTITIONS):
        assert values_of(fleet, partition, 2 * EACH) == expected
    disk.power_up()
    fleet.start(1)
    fleet.wait_until_even()
    produce(fleet, "again")
