"""Topics and settings of a fleet are decided by its rows, on whatever node a client asks."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import TypeVar
from uuid import UUID

from broker.fleet.catalog.port import CatalogError
from broker.fleet.catalog.rows import Document, NewTopics, TopicAnswer, TopicRow
from broker.fleet.catalog.shards import shard_of
from broker.fleet.committer import FleetReach
from broker.fleet.image import SETTINGS, BrokerImage
from broker.fleet.pacing import until_answered
from broker.runtime.documents import NotDecided, OutOfDate
from broker.topics.new_topic import NewTopic
from storage.errors import StorageError

T = TypeVar("T")

ANSWER_SECONDS = 15.0


class FleetAuthority:
    """The `TopicAuthority` of a node. Its caller has the image's `changing`."""

    is_shared = True

    def __init__(self, reach: FleetReach, image: BrokerImage, shards: int) -> None:
        """`shards` of the fleet."""
        self._reach = reach
        self._image = image
        self._shards = shards
        self._is_behind = False
        """Others may have decided what could not be had when it was asked for last."""

    async def create(self, new: Sequence[NewTopic], settings: str) -> None:
        """As the port has it. NotDecided, and none of them is there unless that is unknown.

        Settings that stay as they are go with them, too: they are decided to be those still.
        """
        rows = [TopicRow(each.topic_id, each.name, self._shards_of(each)) for each in new]
        document = self._image.next_settings(settings.encode())
        order = NewTopics(rows, document)
        answer = await self._asked(lambda: self._reach.catalog.create_topics(order))
        if answer is TopicAnswer.TAKEN:
            names = ", ".join(each.name for each in new)
            raise OutOfDate(f"another node has just made a topic of {names}")
        if answer is TopicAnswer.CHANGED:
            raise self._refusal(SETTINGS)
        self._image.note(document)

    async def grow(self, counts: Mapping[UUID, int]) -> None:
        """As the port has it."""
        catalog, rows = self._reach.catalog, {each.topic_id: each for each in self._image.rows}
        for topic_id, count in counts.items():
            row = rows.get(topic_id)
            had = 0 if row is None else len(row.shards)
            more = [self._shard(topic_id, index) for index in range(had, count)]
            if not await self._asked(lambda: catalog.grow_topic(topic_id, had, more)):  # noqa: B023
                raise OutOfDate(f"the topic {topic_id} was changed meanwhile: try again")

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
            raise self._refusal(name)
        self._image.note(document)

    async def catch_up(self) -> None:
        """As `FollowsOthers` has it."""
        version: float = inf
        with suppress(CatalogError, StorageError, TimeoutError):  # as it will be to the change
            async with asyncio.timeout(ANSWER_SECONDS):
                version = await self._reach.catalog.version()
                await self._image.follow(version)
        self._is_behind = self._image.documents_version < version

    def check_known(self, name: str) -> None:
        """As `DocumentAuthority` has it."""
        if name in self._image.unreadable:
            raise self._refusal(name)
        if self._is_behind:
            raise NotDecided(f"nobody said whether another node has changed {name}: try again")

    async def producer_ids(self, count: int) -> int:
        """The first of so many ids in a row that nobody ever gets again. NotDecided."""
        return await self._asked(lambda: self._reach.catalog.producer_ids(count))

    def _refusal(self, name: str) -> NotDecided:
        if name in self._image.unreadable:
            return NotDecided(
                f"{name} cannot be changed on this node, which cannot read what they are now: "
                "another node may, and the event fleet_settings_refused says why"
            )
        return OutOfDate(f"{name} were changed on another node meanwhile: try again")

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

    def _shards_of(self, new: NewTopic) -> Sequence[int]:
        return [self._shard(new.topic_id, index) for index in range(new.partition_count)]

    def _shard(self, topic_id: UUID, index: int) -> int:
        return shard_of(topic_id, index, self._shards)
