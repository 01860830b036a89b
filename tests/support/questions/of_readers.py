"""Questions of readers: records, sessions of fetches, ends of epochs, topics by name and by id."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from protocol.apis import fetch, list_offsets, metadata, produce
from protocol.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.wire import ZERO_UUID
from tests.support.questions.question import Question, Seen
from tests.support.worlds.handler_world import batch

UNKNOWN = UUID(int=0x0DD)
THAT_SESSION = -2
"""As id of a session: the last one that an answer had."""
NO_SESSION = (0, -1)
Place = tuple[str, int, int]
"""Topic, partition, offset."""


def append(topic: str, *values: bytes) -> Question:
    """One batch with these values to partition 0, durable when it is answered."""
    data = produce.PartitionProduceData(index=0, records=batch(*values))
    topics = [produce.TopicProduceData(name=topic, partition_data=[data])]
    request = produce.ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics)
    return Question(f"produce {len(values)} to {topic}", 12, lambda _: request)


def read(
    *places: Place,
    version: int = 12,
    session: tuple[int, int] = NO_SESSION,
    forget: Sequence[tuple[str, int]] = (),
    epochs: tuple[int, int] = (-1, -1),
    **how: Any,
) -> Question:
    """A fetch that does not wait. `session`: id and epoch; `epochs`: the leader's, the last one."""

    def make(seen: Seen) -> fetch.FetchRequest:
        return fetch.FetchRequest(
            min_bytes=0,
            max_bytes=1 << 20,
            session_id=seen.session_id if session[0] == THAT_SESSION else session[0],
            session_epoch=session[1],
            topics=[_place(each, epochs, seen) for each in places],
            forgotten_topics_data=[
                fetch.ForgottenTopic(topic=name, topic_id=_id(name, seen), partitions=[index])
                for name, index in forget
            ],
        )

    what = f"fetch v{version} {list(places)} session {session} epochs {epochs} forget {forget}"
    return Question(what, version, make, **how)


def _place(place: Place, epochs: tuple[int, int], seen: Seen) -> fetch.FetchTopic:
    name, index, offset = place
    part = fetch.FetchPartition(
        partition=index,
        fetch_offset=offset,
        partition_max_bytes=1 << 20,
        current_leader_epoch=epochs[0],
        last_fetched_epoch=epochs[1],
    )
    return fetch.FetchTopic(topic=name, topic_id=_id(name, seen), partitions=[part])


def _id(name: str, seen: Seen) -> UUID:
    return seen.ids.get(name, UNKNOWN)


def epoch_end(topic: str, partition: int, epoch: int, current: int, version: int = 4) -> Question:
    """The end of an epoch, for a client that believes the leader's epoch to be `current`."""
    asked = OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=current, leader_epoch=epoch
    )
    topics = [OffsetForLeaderTopic(topic=topic, partitions=[asked])]
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)
    what = f"end v{version} of epoch {epoch} of {topic}-{partition}, current {current}"
    return Question(what, version, lambda _: request)


def offset_of(topic: str, timestamp: int, current: int) -> Question:
    """The first offset from a time on, for a client that believes that epoch of the leader."""
    part = list_offsets.ListOffsetsPartition(timestamp=timestamp, current_leader_epoch=current)
    topics = [list_offsets.ListOffsetsTopic(name=topic, partitions=[part])]
    request = list_offsets.ListOffsetsRequest(replica_id=-1, topics=topics)
    return Question(f"offset of {topic} at {timestamp}, current {current}", 7, lambda _: request)


def look_up(
    *asked: tuple[str | None, str | UUID], version: int = 12, create: bool = False, **how: Any
) -> Question:
    """Topics by name and id; an id as text is that of the topic with this name."""

    def make(seen: Seen) -> metadata.MetadataRequest:
        topics = [
            metadata.MetadataRequestTopic(
                name=name, topic_id=seen.ids[by] if isinstance(by, str) else by
            )
            for name, by in asked
        ]
        return metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=create)

    rows = [(name, by if isinstance(by, str) else by.int) for name, by in asked]
    return Question(f"metadata v{version} {rows}{' create' * create}", version, make, **how)


def named(name: str | None) -> tuple[str | None, UUID]:
    """A topic by its name alone."""
    return name, ZERO_UUID
