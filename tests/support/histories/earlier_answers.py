"""Answers of a broker about the topics, groups and settings of `earlier_release`, as JSON."""

import hashlib
from collections.abc import Iterator
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from protocol.apis.describe_client_quotas import DescribeClientQuotasRequest
from protocol.apis.describe_producers import DescribeProducersRequest, TopicRequest
from protocol.apis.list_transactions import ListTransactionsRequest
from tests.support.clients.wire import WireClient

PATIENCE_SECONDS = 30
TOPICS = ("plain", "txn", "compacted", "arrival")
GROUPS = ("classic", "modern", "of-a-transaction")
OLDER_MS = (10**9, 1_000_000, 995_000, 970_000, 500_000, 499_990, 0)
"""Times to look up, before the time of writing."""


def connected(bootstrap: str) -> WireClient:
    """A plain connection to HOST:PORT."""
    host, port = bootstrap.split(":")
    return WireClient(host, int(port))


def answers(bootstrap: str, written_ms: int) -> dict[str, object]:
    """Everything that stays the same from start to start, by question."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found: dict[str, object] = {"topics": _topics(admin), "offsets": dict(_offsets(admin))}
    for isolation in ("read_committed", "read_uncommitted"):
        found[isolation] = dict(_records(bootstrap, isolation, written_ms))
    found["groups"] = dict(_groups(admin))
    found["settings"] = dict(_settings(admin))
    with connected(bootstrap) as client:
        found["quotas"] = _quotas(client)
        found["transactions"] = _transactions(client)
        found["producers"] = dict(_producers(client))
    return found


def _topics(admin: AdminClient) -> list[object]:
    named = admin.describe_topics(TopicCollection(list(TOPICS)))
    found = [future.result(PATIENCE_SECONDS) for future in named.values()]
    listed = sorted(admin.list_topics(timeout=PATIENCE_SECONDS).topics)
    return [listed, sorted((t.name, str(t.topic_id), len(t.partitions)) for t in found)]


def _offsets(admin: AdminClient) -> Iterator[tuple[str, object]]:
    places = [TopicPartition(topic, number) for topic in TOPICS for number in (0, 1)]
    for name in ("earliest", "latest"):
        asked = admin.list_offsets(dict.fromkeys(places, getattr(OffsetSpec, name)()))
        found = {place: future.result(PATIENCE_SECONDS) for place, future in asked.items()}
        yield name, sorted((p.topic, p.partition, each.offset) for p, each in found.items())


def _records(bootstrap: str, isolation: str, written_ms: int) -> Iterator[tuple[str, object]]:
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": isolation,
        "enable.partition.eof": True, "enable.auto.commit": False, "fetch.wait.max.ms": 10,
    })  # fmt: skip
    for topic in TOPICS:
        for number in (0, 1):
            place = TopicPartition(topic, number)
            messages = _read(consumer, place)
            yield f"{topic}-{number}", _summary(messages, newest_only=topic == "compacted")
            times = [TopicPartition(topic, number, written_ms - older) for older in OLDER_MS]
            landed = [consumer.offsets_for_times([each], PATIENCE_SECONDS)[0] for each in times]
            if topic != "compacted":
                yield f"{topic}-{number} by time", [each.offset for each in landed]
    consumer.close()


def _read(consumer: Consumer, place: TopicPartition) -> list[Message]:
    low, _ = consumer.get_watermark_offsets(place, timeout=PATIENCE_SECONDS)
    consumer.assign([TopicPartition(place.topic, place.partition, low)])
    messages: list[Message] = []
    while True:
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None, f"{place} has no end"
        error = message.error()
        if error is not None:
            assert error.name() == "_PARTITION_EOF", error
            return messages
        messages.append(message)


def _summary(messages: list[Message], *, newest_only: bool) -> dict[str, object]:
    """All of every record in one hash; of a compacted partition those that compaction keeps."""
    kept = list({each.key(): each for each in messages}.values()) if newest_only else messages
    rows = [_row(each) for each in sorted(kept, key=lambda each: each.offset() or 0)]
    whole = hashlib.sha256(repr(rows).encode()).hexdigest()
    return {"records": len(rows), "sha256": whole, "first": rows[:1], "last": rows[-1:]}


def _row(message: Any) -> tuple[object, ...]:
    kind, stamp = message.timestamp()
    when = stamp if kind == 1 else "arrival"
    text = [(part or b"").decode() for part in (message.key(), message.value())]
    headers = [(name, (value or b"").decode()) for name, value in message.headers() or ()]
    return (message.offset(), when, *text, headers, message.leader_epoch())


def _groups(admin: AdminClient) -> Iterator[tuple[str, object]]:
    listed = admin.list_consumer_groups().result(PATIENCE_SECONDS).valid
    kinds = {each.group_id: (each.type.name, each.state.name) for each in listed}
    for group in GROUPS:
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        places = asked[group].result(PATIENCE_SECONDS).topic_partitions
        committed = sorted((p.topic, p.partition, p.offset, p.leader_epoch) for p in places)
        yield group, [kinds[group], committed]


def _settings(admin: AdminClient) -> Iterator[tuple[str, object]]:
    """Those of topics, and those of the broker that were set."""
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in TOPICS]
    resources.append(ConfigResource(ResourceType.BROKER, "1"))
    for resource, future in admin.describe_configs(resources).items():
        found = future.result(PATIENCE_SECONDS).values()
        own = {each.name: each.value for each in found if not each.is_default}
        yield resource.name, {name: own[name] for name in sorted(own.keys() - {"log.dirs"})}


def _quotas(client: WireClient) -> list[object]:
    answer = client.call(DescribeClientQuotasRequest(components=[], strict=False), 1)
    return [
        [[(part.entity_type, part.entity_name) for part in entry.entity],
         [(each.key, each.value) for each in entry.values]]
        for entry in answer.entries
    ]  # fmt: skip


def _transactions(client: WireClient) -> list[Any]:
    states = client.call(ListTransactionsRequest(), 0).transaction_states
    return sorted((t.transactional_id, t.producer_id, t.transaction_state) for t in states)


def _producers(client: WireClient) -> Iterator[tuple[str, object]]:
    topics = [TopicRequest(name=name, partition_indexes=[0, 1]) for name in TOPICS]
    for topic in client.call(DescribeProducersRequest(topics=topics), 0).topics:
        for partition in topic.partitions:
            yield (
                f"{topic.name}-{partition.partition_index}",
                sorted(
                    (p.producer_id, p.producer_epoch, p.last_sequence, p.current_txn_start_offset)
                    for p in partition.active_producers
                ),
            )
