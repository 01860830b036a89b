"""All that clients can learn of a broker's topics, to be compared with another broker's."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from confluent_kafka import Consumer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.records.record import Record, read_records
from protocol.records.scan import scan_batches
from tests.support.clients.admin import Admin
from tests.support.clients.wire import WireClient
from tests.support.worlds.node_process import NodeProcess
from tests.support.worlds.watched_broker import fetch_from

SAMPLES = 12
"""Times of each partition that are looked up, by either clock."""
Name = tuple[str, int]


class PartitionView(NamedTuple):
    """One partition, read from its start to its end."""

    start_offset: int
    end_offset: int
    stable_offset: int
    batches: tuple[bytes, ...]
    """As they are stored, control batches too."""
    aborted: tuple[tuple[int, int], ...]
    """Producer id and first offset of transactions that readers of committed records leave out."""
    by_time: tuple[tuple[int, int], ...]
    """Times, and the offsets that ListOffsets gives for them."""
    by_arrival: tuple[Any, ...]
    """Answers to lookups by arrival: offset, both times, and whether they are exact."""


class BrokerView(NamedTuple):
    """One broker."""

    cluster_id: str
    topic_ids: dict[str, str]
    partitions: dict[Name, PartitionView]
    committed: dict[str, dict[Name, int]]
    """By group."""
    settings: dict[str, dict[str, str]]
    """Settings that were made, by topic."""
    acls: frozenset[str]


def view_of(node: NodeProcess, partitions: dict[str, int], groups: list[str]) -> BrokerView:
    """Asks the broker for everything. `partitions`: their number by topic."""
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    described: Any = admin.list_topics(timeout=30)
    names = [(topic, at) for topic, count in partitions.items() for at in range(count)]
    ids = {
        topic: str(found.result(30).topic_id)
        for topic, found in admin.describe_topics(TopicCollection(list(partitions))).items()
    }
    return BrokerView(
        str(described.cluster_id),
        ids,
        {name: _partition(node, *name) for name in names},
        {group: _committed(node, group, names) for group in groups},
        {topic: _settings(admin, topic) for topic in partitions},
        frozenset(str(each) for each in admin.describe_acls(_every_acl()).result(30)),
    )


def _every_acl() -> AclBindingFilter:
    anything: Any = None
    return AclBindingFilter(
        ResourceType.ANY, anything, ResourcePatternType.ANY, anything, anything,
        AclOperation.ANY, AclPermissionType.ANY,
    )  # fmt: skip


def _settings(admin: AdminClient, topic: str) -> dict[str, str]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(30)
    return {name: str(each.value) for name, each in found.items() if not each.is_default}


def _committed(node: NodeProcess, group: str, names: list[Name]) -> dict[Name, int]:
    consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": group})
    try:
        found = consumer.committed([TopicPartition(*name) for name in names], timeout=30)
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}
    finally:
        consumer.close()


def client_of(node: NodeProcess) -> WireClient:
    """A connection."""
    host, _, port = node.bootstrap.rpartition(":")
    return WireClient(host, int(port))


def _partition(node: NodeProcess, topic: str, partition: int) -> PartitionView:
    with client_of(node) as client:
        start, end = (_offset(client, topic, partition, at) for at in (-2, -1))
        stable, batches, aborted = _read(client, topic, partition, start, end)
        records = [record for batch in batches for record in read_records(memoryview(batch))]
        times = sorted({each.timestamp for each in _some(records)})
        by_time = tuple((at, _offset(client, topic, partition, at)) for at in times)
    arrivals = tuple(_arrivals(node, topic, partition))
    return PartitionView(start, end, stable, tuple(batches), aborted, by_time, arrivals)


def _some(records: list[Record]) -> list[Record]:
    return records[:: max(1, len(records) // SAMPLES)]


def _offset(client: WireClient, topic: str, partition: int, timestamp: int) -> int:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    answer = client.call(request, 11).topics[0].partitions[0]
    assert answer.error_code == 0, answer
    return int(answer.offset)


def _read(
    client: WireClient, topic: str, partition: int, start: int, end: int
) -> tuple[int, list[bytes], tuple[tuple[int, int], ...]]:
    batches: list[bytes] = []
    aborted: set[tuple[int, int]] = set()
    at, stable = start, end
    while at < end:
        found = fetch_from(
            client, topic=topic, partition=partition, offset=at, isolation_level=1,
            max_wait_ms=30_000, max_bytes=1 << 24,
        ).responses[0].partitions[0]  # fmt: skip
        assert found.error_code == 0, found.error_code
        data = bytes(found.records or b"")
        scan = scan_batches(data)
        assert scan.batches, f"{topic}-{partition}: nothing at {at}"
        batches += (data[row[0] : row[0] + row[5]] for row in scan.batches)
        aborted |= {
            (each.producer_id, each.first_offset) for each in found.aborted_transactions or ()
        }
        at, stable = scan.batches[-1][2] + 1, found.last_stable_offset
    return stable, batches, tuple(sorted(aborted))


def _arrivals(node: NodeProcess, topic: str, partition: int) -> Iterator[Any]:
    """Walks on from some arrivals to later ones, in growing steps."""
    api, at = Admin(node.facts["http"]), 0
    for step in range(1, 2 * SAMPLES):
        answer = api.get(
            f"/api/topics/{topic}/time/lookup", timestamp=at, clock="arrival", partition=partition
        )
        found = answer["partitions"][0]["found"]
        yield found
        if found is None:
            return
        at = found["arrival_time"]["ms"] + step * step
