"""The port by which topics and settings are decided.

A broker that stands alone decides by itself, by writing its files. In a fleet its rows decide, and
each node makes its part of what they have.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from broker.runtime.documents import FollowsOthers
from broker.topics.new_topic import NewTopic


class TopicAuthority(FollowsOthers, Protocol):
    """Decides before anything is made here. Every call: StorageError, and nothing is decided, or
    nobody knows; OutOfDate, and nothing is decided: another node has changed what it was made of.
    """

    async def create(self, new: Sequence[NewTopic], settings: str) -> None:
        """Topics that this node found possible, and all settings with theirs, and with none that
        an earlier topic of such a name had. All of it, or nothing.
        """

    async def grow(self, counts: Mapping[UUID, int]) -> None:
        """Topics get so many partitions."""

    async def delete(self, topic_ids: Sequence[UUID]) -> None:
        """Topics go."""

    async def settings(self, text: str) -> None:
        """All settings that clients made are these."""


class DecidesHere:
    """The `TopicAuthority` of a broker that stands alone."""

    is_shared = False

    async def create(self, new: Sequence[NewTopic], settings: str) -> None:
        """As it was found."""

    async def grow(self, counts: Mapping[UUID, int]) -> None:
        """As it was found."""

    async def delete(self, topic_ids: Sequence[UUID]) -> None:
        """As it was found."""

    async def settings(self, text: str) -> None:
        """As it was found."""

    async def catch_up(self) -> None:
        """There are no others."""


class DecidedTopic(NamedTuple):
    """A topic that there is."""

    topic_id: UUID
    name: str
    partition_count: int
