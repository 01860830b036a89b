"""Topics and settings of a fleet are decided by its rows, on whatever node a client asks."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import gcd
from typing import TypeVar
from uuid import UUID

from crc32c import crc32c

from broker.fleet.catalog.rows import Document, TopicAnswer
from broker.fleet.committer import FleetReach
from broker.fleet.image import SETTINGS, BrokerImage
from broker.fleet.pacing import until_answered
from broker.topics.new_topic import NewTopic
from storage.errors import StorageError

T = TypeVar("T")

ANSWER_SECONDS = 15.0
GOLDEN = 0.618


class NotDecided(StorageError):  # noqa: N818 - what happened
    """The rows did not take it, or did not say so in time."""

    def __init__(self, message: str) -> None:
        """`message`: what, and what to do."""
        super().__init__("the fleet's catalog", message)


class FleetAuthority:
    """The `TopicAuthority` of a node. Its caller has the image's `changing`."""

    def __init__(self, reach: FleetReach, image: BrokerImage, shards: int) -> None:
        """`shards` of the fleet."""
        self._reach = reach
        self._image = image
        self._shards = shards

    async def create(self, new: Sequence[NewTopic]) -> None:
        """As the port has it. NotDecided, and none of them is there unless that is unknown."""
        made: list[NewTopic] = []
        try:
            for each in new:
                made.append(each)
                await self._create(each)
        except NotDecided:
            await self._undo(made)
            raise

    async def grow(self, counts: Mapping[UUID, int]) -> None:
        """As the port has it."""
        catalog, rows = self._reach.catalog, {each.topic_id: each for each in self._image.rows}
        for topic_id, count in counts.items():
            row = rows.get(topic_id)
            had = 0 if row is None else len(row.shards)
            more = [self._shard(topic_id, index) for index in range(had, count)]
            if not await self._asked(lambda: catalog.grow_topic(topic_id, had, more)):  # noqa: B023
                raise NotDecided(f"the topic {topic_id} was changed meanwhile: try again")

    async def delete(self, topic_ids: Sequence[UUID]) -> None:
        """As the port has it."""
        for each in topic_ids:
            await self._delete(each)

    async def settings(self, text: str) -> None:
        """As the port has it."""
        await self.decided(SETTINGS, text.encode())

    async def decided(self, name: str, content: bytes) -> None:
        """As `DocumentAuthority` has it."""
        version = self._image.documents.get(name, 0) + 1
        document = Document(name, version, content)
        if not await self._asked(lambda: self._reach.catalog.put_document(document)):
            raise NotDecided(f"{name} were changed on another node meanwhile: try again")
        self._image.documents[name] = version

    async def producer_ids(self, count: int) -> int:
        """The first of so many ids in a row that nobody ever gets again. NotDecided."""
        return await self._asked(lambda: self._reach.catalog.producer_ids(count))

    async def _create(self, new: NewTopic) -> None:
        topic_id, count = new.topic_id, new.partition_count
        shards = [self._shard(topic_id, index) for index in range(count)]
        answer = await self._asked(
            lambda: self._reach.catalog.create_topic(topic_id, new.name, shards)
        )
        if answer is TopicAnswer.TAKEN:
            raise NotDecided(f"another node has just made a topic {new.name}")

    async def _undo(self, made: Sequence[NewTopic]) -> None:
        for each in made:
            try:
                await self._delete(each.topic_id)
            except NotDecided:
                return  # whoever asks for it again finds it

    async def _delete(self, topic_id: UUID) -> None:
        keep_ms = round(self._reach.times.keep * 1000)
        await self._asked(lambda: self._reach.catalog.delete_topic(topic_id, keep_ms))

    async def _asked(self, ask: Callable[[], Awaitable[T]]) -> T:
        _, _, clock, times, *_ = self._reach
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await until_answered(ask, clock, times)
        except TimeoutError:
            raise NotDecided(f"no answer in {ANSWER_SECONDS:g} s: try again") from None

    def _shard(self, topic_id: UUID, index: int) -> int:
        first: int = crc32c(topic_id.bytes)
        return (first + index * stride(self._shards)) % self._shards


def stride(shards: int) -> int:
    """From the shard of one partition to that of the next: so that few of them are spread, too.

    A node has runs of neighbours, so neighbours would have one owner. By the golden ratio any few
    in a row lie far apart, and all shards come before one comes again.
    """
    most = round(shards * GOLDEN)
    return next(each for each in range(max(most, 1), shards + 1) if gcd(each, shards) == 1)
