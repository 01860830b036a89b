"""ShareFetch and ShareAcknowledge, spoken word by word to a real Kafka 4.3 and to us.

Both hear the same requests and have to answer the same: codes, ranges, delivery counts. Texts of
errors are not compared. Not asked, since we differ on purpose: an empty group id (42 here; Kafka
goes on, and fails at the partition with -1), a fetch of an unknown topic id (100 at the partition
here, -1 for all of it there).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from protocol.apis import (
    find_coordinator,
    incremental_alter_configs,
    metadata,
    share_acknowledge,
    share_fetch,
    share_group_heartbeat,
)
from tests.conformance.conftest import create_topic
from tests.conformance.test_consumer_group_differential import until
from tests.conformance.test_share_consumer import COMMON, KAFKA
from tests.support.clients.wire import WireClient
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.handler_world import altered

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
GROUP_RESOURCE, SET = 32, 0
UNKNOWN_TOPIC = UUID(int=12345)
LONG_LOCKS = {"group.share.record.lock.duration.ms": "30000"}


class Side:
    """One broker, and all that it answered."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.host, self.port = bootstrap.rsplit(":", 1)
        self.said: list[object] = []
        self.ids: dict[str, UUID] = {}

    def queue(self, name: str, *, group: str, **settings: str) -> None:
        """A topic with six records in three batches, and a group that reads it from the start."""
        create_topic(AdminClient({"bootstrap.servers": self.bootstrap}), name, 1)
        with WireClient(self.host, int(self.port)) as wire:
            self._make(wire, name, group, settings)

    def _make(self, wire: WireClient, name: str, group: str, settings: dict[str, str]) -> None:
        until(lambda: self._knows(wire, name))
        named = {"share.auto.offset.reset": "earliest", **settings}
        resource = altered(
            GROUP_RESOURCE, group, [(key, SET, value) for key, value in named.items()]
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
        assert wire.call(request, 1).responses[0].error_code == 0
        self.append(name, 6)
        self._join(wire, group, name)

    def _knows(self, wire: WireClient, name: str) -> bool:
        """True once the broker has heard of the topic; its id is noted."""
        topics = wire.call(metadata.MetadataRequest(topics=None), 12).topics
        self.ids |= {each.name: each.topic_id for each in topics if each.name == name}
        return name in self.ids

    def append(self, name: str, count: int, size: int = 2) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 1000})
        for number in range(count):
            producer.produce(name, str(number), partition=0)
            if number % size == size - 1:
                producer.flush()
        producer.flush()

    def _join(self, wire: WireClient, group: str, name: str) -> None:
        epoch, end = 0, time.monotonic() + 30
        find = find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
        wire.call(find, 6)  # makes the topic of groups
        while time.monotonic() < end:
            answer = wire.call(
                share_group_heartbeat.ShareGroupHeartbeatRequest(
                    group_id=group, member_id="joined", member_epoch=epoch,
                    subscribed_topic_names=[name] if epoch == 0 else None,
                ), 1,
            )  # fmt: skip
            if answer.error_code == 0:
                epoch = answer.member_epoch
                if answer.assignment is not None and answer.assignment.topic_partitions:
                    return
            time.sleep(0.5)
        raise AssertionError(f"no assignment: {answer}")

    @contextmanager
    def member(self, group: str, name: str, member: str) -> Iterator["Member"]:
        with WireClient(self.host, int(self.port)) as wire:
            yield Member(self, wire, group, self.ids[name], member)


class Member:
    """One session on a connection of its own."""

    def __init__(
        self, side: Side, wire: WireClient, group: str, topic_id: UUID, member: str
    ) -> None:
        self.side, self.wire, self.group, self.member = side, wire, group, member
        self.topic_id = topic_id

    def fetch(self, epoch: int, *acks: Any, version: int = 2, **how: Any) -> None:
        partition = how.pop("partition", 0)
        topic_id = how.pop("topic_id", self.topic_id)
        forgotten = how.pop("forgotten", [])
        part = share_fetch.ShareFetchPartition(
            partition_index=partition, acknowledgement_batches=_batches(acks)
        )
        topic = share_fetch.ShareFetchTopic(topic_id=topic_id, partitions=[part])
        fields = {
            "group_id": self.group, "member_id": self.member, "max_wait_ms": 400, "min_bytes": 1,
            "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500, **how,
        }  # fmt: skip
        request = share_fetch.ShareFetchRequest(
            share_session_epoch=epoch,
            topics=[topic] if acks or epoch == 0 else [],
            forgotten_topics_data=[
                share_fetch.ShareForgottenTopic(topic_id=self.topic_id, partitions=forgotten)
            ]
            if forgotten
            else [],
            **fields,
        )
        answer = self.wire.call(request, version)
        self.side.said.append(
            (
                answer.error_code,
                answer.acquisition_lock_timeout_ms if not answer.error_code else None,
                [
                    (
                        each.partition_index, each.error_code, each.acknowledge_error_code,
                        len(each.records or b"") > 0,
                        each.current_leader.leader_id, each.current_leader.leader_epoch,
                        [
                            (row.first_offset, row.last_offset, row.delivery_count)
                            for row in each.acquired_records
                        ],
                    )
                    for found in answer.responses
                    for each in found.partitions
                ],
                len(answer.node_endpoints),
            )
        )  # fmt: skip

    def acknowledge(self, epoch: int, *acks: Any, version: int = 2, **how: Any) -> None:
        part = share_acknowledge.ShareAcknowledgePartition(
            partition_index=how.pop("partition", 0), acknowledgement_batches=_batches(acks)
        )
        topic = share_acknowledge.ShareAcknowledgeTopic(
            topic_id=how.pop("topic_id", self.topic_id), partitions=[part]
        )
        fields = {"group_id": self.group, "member_id": self.member, **how}
        request = share_acknowledge.ShareAcknowledgeRequest(
            share_session_epoch=epoch, topics=[topic] if acks else [], **fields
        )
        answer = self.wire.call(request, version)
        self.side.said.append(
            (
                answer.error_code,
                [
                    (each.partition_index, each.error_code)
                    for found in answer.responses
                    for each in found.partitions
                ],
            )
        )


def _batches(acks: Any) -> list[Any]:
    return [
        share_acknowledge.AcknowledgementBatch(
            first_offset=first, last_offset=last, acknowledge_types=types
        )
        for first, last, *types in acks
    ]


def sessions(side: Side) -> None:
    side.queue("sessions", group="s")
    with side.member("s", "sessions", "a") as a:
        a.fetch(1)
        a.acknowledge(1, (0, 0, ACCEPT))
        a.acknowledge(0, (0, 0, ACCEPT))
        a.acknowledge(-1)
        a.fetch(-1)
        a.fetch(0, (0, 0, ACCEPT))
        a.fetch(0)
        a.fetch(5)
        a.acknowledge(7)
        a.acknowledge(1)
        a.fetch(2)
        a.fetch(3, forgotten=[0])
        a.fetch(4, (0, 0, ACCEPT))
        a.fetch(-1)
        a.fetch(-1)
        a.fetch(0, member_id="")
        a.fetch(0, member_id="m" * 37)
        a.fetch(0, group_id=None)
        a.acknowledge(1, member_id="")


def ranges(side: Side) -> None:
    side.queue("ranges", group="r")
    with side.member("r", "ranges", "a") as a, side.member("r", "ranges", "b") as b:
        a.fetch(0, max_records=1)
        b.fetch(0, max_records=1)
        a.acknowledge(1, (0, 1, ACCEPT, RELEASE))
        a.acknowledge(2, (0, 0, ACCEPT))
        a.acknowledge(3, (1, 1, ACCEPT))
        a.acknowledge(4, (2, 3, ACCEPT))
        b.acknowledge(1, (3, 2, ACCEPT))
        b.acknowledge(2, (2, 3, ACCEPT, ACCEPT, ACCEPT))
        b.acknowledge(3, (2, 3, 9))
        b.acknowledge(4, (2, 3, RENEW))
        b.acknowledge(5, (2, 3, RENEW), is_renew_ack=True)
        b.acknowledge(6, (2, 2, ACCEPT), (2, 3, ACCEPT))
        b.acknowledge(7, (2, 3))
        b.acknowledge(8, (3, 9, ACCEPT))
        b.acknowledge(9, (4, 5, ACCEPT))
        b.acknowledge(10, (2, 3, GAP))
        a.fetch(5, max_records=100)
        a.fetch(6, (1, 1, REJECT), (4, 5, ACCEPT, RELEASE))
        a.fetch(7)
        a.acknowledge(8, (5, 5, ACCEPT))


def modes(side: Side) -> None:
    side.queue("modes", group="m")
    with side.member("m", "modes", "a") as a:
        a.fetch(0, max_records=3)
        a.fetch(1, (0, 3, RELEASE), max_records=1, share_acquire_mode=1)
        a.fetch(2, max_records=2, share_acquire_mode=1)
        a.fetch(3, max_records=3, batch_size=1)
        a.fetch(4, is_renew_ack=True)
        renewal = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait_ms": 0}
        a.fetch(4, (0, 0, RENEW), is_renew_ack=True, **renewal)
        a.fetch(5, (0, 0, RENEW))
        a.acknowledge(6, (0, 5, ACCEPT), version=1)
        a.fetch(7, version=1, max_bytes=1)


def deliveries(side: Side) -> None:
    side.queue("deliveries", group="d", **{"share.delivery.count.limit": "4"})
    with side.member("d", "deliveries", "a") as a:
        a.fetch(0)
        for epoch in range(1, 12):
            a.fetch(epoch, (0, 5, RELEASE) if epoch < 3 else (0, 1, RELEASE))


def places(side: Side) -> None:
    side.queue("places", group="p")
    with side.member("p", "places", "a") as a:
        a.fetch(0, partition=7)
        a.acknowledge(1, (0, 0, ACCEPT), partition=7)
        a.fetch(0)
        a.acknowledge(1, (0, 0, ACCEPT), partition=7)
        a.acknowledge(2, (0, 0, ACCEPT), topic_id=UNKNOWN_TOPIC)


def closings(side: Side) -> None:
    side.queue("closings", group="c")
    with side.member("c", "closings", "b") as b:
        with side.member("c", "closings", "a") as a:
            a.fetch(0, max_records=2)
            b.fetch(0, max_records=2)
            a.acknowledge(-1, (0, 0, ACCEPT))
            time.sleep(0.5)  # Kafka answers before it releases
            b.fetch(1)
        with side.member("c", "closings", "a") as a:
            side.append("closings", 2)
            a.fetch(0)
            b.fetch(2, (1, 1, RELEASE), max_records=1)
            a.fetch(1)
        time.sleep(1)
        b.fetch(3)


SCENES: list[Callable[[Side], None]] = [sessions, ranges, modes, deliveries, places, closings]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    root = tmp_path_factory.mktemp("share-both")
    with ExitStack() as stack:
        kafka = stack.enter_context(start_kafka(root / "kafka", KAFKA | LONG_LOCKS))
        ours = stack.enter_context(start_broker(root / "ours", COMMON | LONG_LOCKS))
        yield Side(kafka.bootstrap), Side(ours.bootstrap)


@pytest.mark.parametrize("scene", SCENES, ids=lambda each: each.__name__)
def test_both_answer_the_same(scene: Callable[[Side], None], both: tuple[Side, Side]) -> None:
    for side in both:
        side.said.clear()
        scene(side)
    kafka, ours = both
    assert len(kafka.said) == len(ours.said)
    different = [
        (number, of_kafka, of_us)
        for number, (of_kafka, of_us) in enumerate(zip(kafka.said, ours.said, strict=True))
        if of_kafka != of_us
    ]
    assert not different, "\n".join(map(str, different))
