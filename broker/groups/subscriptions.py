"""Subscriptions of members that the broker assigns for: their topics, and what they take."""

from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b
from uuid import UUID

from broker.topics.metadata_image import MetadataImage

Target = Mapping[UUID, frozenset[int]]
"""Partitions by topic."""
Subscriptions = Mapping[str, frozenset[UUID]]
"""The topics that each member reads, in the order in which members came."""
Place = tuple[UUID, int]

FIRST_EPOCH = 1
MAX_ID_CHARACTERS = 1000  # Kafka: whatever fits a record's key
OBJECT_BYTES = 16  # about what a partition or a topic id takes
NAME_BYTES = 96  # what a topic's name takes beside its characters: the text's head, its slot


def words_bytes(names: Collection[str], regex: str, client_id: str) -> int:
    """About what these take in memory."""
    return sum(map(len, names)) + NAME_BYTES * len(names) + len(regex) + len(client_id)


def hash_of(names: Iterable[str], image: MetadataImage) -> int:
    """A number that changes when a topic comes, goes or gets more partitions; 0 for no topic.

    A real Kafka computes it in another way: it then computes the assignment again once.
    """
    facts = [
        (name, topic.topic_id.hex, len(topic.partitions))
        for name in sorted(names)
        if (topic := image.topics.get(name)) is not None
    ]
    if not facts:
        return 0
    digest = blake2b(repr(facts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)
