"""Shared parts of group requests: their id, topics by name or by id, what a commit is about."""

from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from broker.topics.metadata_image import MetadataImage, TopicImage
from protocol.errors import ErrorCode, KafkaError
from protocol.wire import ZERO_UUID

EPOCHS_SINCE_VERSION = 9
"""Of OffsetCommit: before it, a client cannot mean an epoch."""


class CommitAsked(NamedTuple):
    """The partitions of a commit, and the version of OffsetCommit."""

    version: int
    places: Sequence[tuple[UUID, int]]
    named: Collection[tuple[str, int]]
    """As `places`, with the topics' names."""


def check_group_id(group_id: str) -> None:
    """A group with members has a name: INVALID_GROUP_ID (24). (Offsets may do without one.)"""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)


def topic_of(image: MetadataImage, name: str, topic_id: UUID) -> TopicImage:
    """The topic that a request names.

    UNKNOWN_TOPIC_OR_PARTITION (3) for a name, UNKNOWN_TOPIC_ID (100) for an id that nothing has.
    """
    found = image.topic(name, topic_id)
    if found is None:
        is_name = bool(name) or topic_id == ZERO_UUID
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_name else ErrorCode.UNKNOWN_TOPIC_ID
        raise KafkaError(code)
    return found
