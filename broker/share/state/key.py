"""Names of share partitions: a group, a topic's id, a partition."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BadBase64
from typing import NamedTuple
from uuid import UUID

ID_CHARACTERS = 22
_PARTS = 3


class ShareKey(NamedTuple):
    """One group's records of one partition."""

    group: str
    topic_id: UUID
    partition: int

    @property
    def owner(self) -> str:
        """The text that Kafka hashes and that FindCoordinator names: group:topicId:partition."""
        topic = urlsafe_b64encode(self.topic_id.bytes).rstrip(b"=").decode()
        return f"{self.group}:{topic}:{self.partition}"


def read_owner(text: str) -> ShareKey:
    """The share partition of `group:topicId:partition`. ValueError for any other text."""
    parts = text.split(":")
    if len(parts) != _PARTS:
        raise ValueError(f"expected groupId:topicId:partition, found {text}")
    group, topic, partition = parts
    if not group.strip():
        raise ValueError("the group id is empty")
    if not partition.isascii() or not partition.isdigit():
        raise ValueError(f"{partition} is no partition")
    return ShareKey(group, _topic_id(topic), int(partition))


def _topic_id(text: str) -> UUID:
    try:
        raw = urlsafe_b64decode(text + "==") if len(text) == ID_CHARACTERS else b""
    except (BadBase64, ValueError):
        raw = b""
    if len(raw) != len(UUID(int=0).bytes):
        raise ValueError(f"{text} is no topic id")
    return UUID(bytes=raw)
