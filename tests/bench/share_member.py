"""A member of a share group on a connection of its own, the same for every broker.

It does as KafkaShareConsumer does by itself: what one fetch brought is accepted with the next one.
Records are counted by what the broker says that it gave; nobody parses them here, so that the
client is not what limits.
"""

import time
from collections.abc import Iterable
from uuid import UUID

from protocol.apis.alter_share_group_offsets import (
    AlterShareGroupOffsetsPartition,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsTopic,
)
from protocol.apis.find_coordinator import FindCoordinatorRequest
from protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from protocol.apis.share_acknowledge import (
    AcknowledgementBatch,
    ShareAcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeTopic,
)
from protocol.apis.share_fetch import ShareFetchPartition, ShareFetchRequest, ShareFetchTopic
from protocol.apis.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.errors import ErrorCode
from tests.bench.wire import BenchFailed, Wire, answer, frame

FETCH, ACKNOWLEDGE = ("ShareFetch", 2), ("ShareAcknowledge", 2)
ACCEPT = 1
MAX_RECORDS, MAX_BYTES, MAX_WAIT_MS = 500, 50 << 20, 500
"""As KafkaShareConsumer asks unless told else."""
PATIENCE_SECONDS = 60

Range = tuple[int, int]


class Member:
    """One member, with one partition of a topic in its session."""

    def __init__(self, wire: Wire, group: str, name: str, topic_id: UUID) -> None:
        self.wire, self._group, self._name, self._topic_id = wire, group, name, topic_id
        self._epoch = 0
        self.held: list[Range] = []

    def join(self, topic: str) -> None:
        request = ShareGroupHeartbeatRequest(
            group_id=self._group, member_id=self._name, member_epoch=0,
            subscribed_topic_names=[topic],
        )  # fmt: skip
        _refuse(self.wire.call("ShareGroupHeartbeat", 1, request).error_code)

    def open(self) -> None:
        """Opens its session, and waits until the share partition gives records."""
        end = time.monotonic() + PATIENCE_SECONDS
        self.ask()
        while not self.take():
            if time.monotonic() > end:
                raise BenchFailed("a share partition gives no records")
            self.ask()

    def ask(self) -> None:
        """Sends a fetch that accepts what it holds."""
        part = ShareFetchPartition(partition_index=0, acknowledgement_batches=self._accepted())
        self.wire.send(
            frame(
                *FETCH,
                ShareFetchRequest(
                    group_id=self._group, member_id=self._name, share_session_epoch=self._epoch,
                    max_wait_ms=MAX_WAIT_MS, min_bytes=1, max_bytes=MAX_BYTES,
                    max_records=MAX_RECORDS, batch_size=MAX_RECORDS,
                    topics=[ShareFetchTopic(topic_id=self._topic_id, partitions=[part])],
                    forgotten_topics_data=[],
                ),
            )
        )  # fmt: skip
        self._epoch += 1

    def take(self) -> int:
        """Receives the answer; the number of records that it brought."""
        told = answer(*FETCH, self.wire.receive())
        _refuse(told.error_code)
        self.held = []
        for part in (part for topic in told.responses for part in topic.partitions):
            _refuse(part.error_code)
            _refuse(part.acknowledge_error_code)
            self.held += [(each.first_offset, each.last_offset) for each in part.acquired_records]
        return count_of(self.held)

    def acknowledge(self, ranges: Iterable[Range]) -> None:
        """Accepts some of what it holds, by a request of its own, and waits for the answer."""
        batches = [_accept(each) for each in ranges]
        part = ShareAcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        request = ShareAcknowledgeRequest(
            group_id=self._group, member_id=self._name, share_session_epoch=self._epoch,
            topics=[ShareAcknowledgeTopic(topic_id=self._topic_id, partitions=[part])],
        )  # fmt: skip
        told = self.wire.call(*ACKNOWLEDGE, request)
        self._epoch += 1
        _refuse(told.error_code)
        for part in (part for topic in told.responses for part in topic.partitions):
            _refuse(part.error_code)

    def _accepted(self) -> list[AcknowledgementBatch]:
        return [_accept(each) for each in self.held]


def _accept(offsets: Range) -> AcknowledgementBatch:
    first, last = offsets
    return AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[ACCEPT])


def count_of(ranges: Iterable[Range]) -> int:
    return sum(last - first + 1 for first, last in ranges)


def topic_id(wire: Wire, name: str) -> UUID:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    found: UUID = wire.call("Metadata", 12, asked).topics[0].topic_id
    return found


def begin(wire: Wire, group: str, topic: str) -> None:
    """A group that reads a topic from its first record on, and has no member yet."""
    end = time.monotonic() + PATIENCE_SECONDS
    while code := find_coordinator(wire, group) or set_start(wire, group, topic):
        if time.monotonic() > end:
            raise BenchFailed(f"a share group cannot begin: {ErrorCode(code).name}")
        time.sleep(0.1)


def find_coordinator(wire: Wire, group: str) -> int:
    asked = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    return int(wire.call("FindCoordinator", 4, asked).coordinators[0].error_code)


def start_request(group: str, topic: str) -> AlterShareGroupOffsetsRequest:
    part = AlterShareGroupOffsetsPartition(partition_index=0, start_offset=0)
    topics = [AlterShareGroupOffsetsTopic(topic_name=topic, partitions=[part])]
    return AlterShareGroupOffsetsRequest(group_id=group, topics=topics)


def set_start(wire: Wire, group: str, topic: str) -> int:
    told = wire.call("AlterShareGroupOffsets", 0, start_request(group, topic))
    codes = [part.error_code for each in told.responses for part in each.partitions]
    return int(told.error_code or max(codes, default=0))


def _refuse(code: int) -> None:
    if code:
        raise BenchFailed(f"a member of a share group was refused: {ErrorCode(code).name}")
