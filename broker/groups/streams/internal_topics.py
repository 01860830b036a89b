"""Makes the topics that applications need for themselves: repartition topics and changelogs.

A heartbeat is answered before they are there, as by Kafka; the next one finds them, or the error.
What failed is not tried again for two intervals of heartbeats. Used from the event loop only.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping

from broker.groups.streams.configuring import InternalTopic
from broker.runtime.event_log import event
from broker.runtime.wire_error import wire_error
from broker.topics.creation import TopicRules
from broker.topics.topic_catalog import TopicCatalog
from protocol.errors import KafkaError
from storage.env import Clock
from storage.errors import StorageError

MAX_ERRORS = 1000  # topics whose error is remembered; Kafka's number
NAMED = 3  # errors that a text names, at most

Allow = Callable[[int], None]
"""Refuses a topic with so many partitions, by a KafkaError."""


class InternalTopics:
    """Topics that are being made, and those that could not be."""

    def __init__(self, topics: TopicCatalog, rules: TopicRules, clock: Clock) -> None:
        """Nothing is being made."""
        self._topics = topics
        self._rules = rules
        self._clock = clock
        self._making: set[str] = set()
        self._errors: dict[str, tuple[float, str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def make(self, wanted: Mapping[str, InternalTopic], allow: Allow, retry_ms: int) -> None:
        """Begins to make those that are not being made, and that did not fail just now."""
        self._forget_errors()
        asked = [
            topic
            for name, topic in wanted.items()
            if name not in self._making and name not in self._errors
        ]
        if not asked:
            return
        self._making.update(topic.name for topic in asked)
        task = asyncio.get_running_loop().create_task(self._make(asked, allow, retry_ms))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def errors_of(self, names: Collection[str]) -> str:
        """The errors of topics that could not be made just now, as a text; empty without."""
        self._forget_errors()
        failed = [f"{name} ({self._errors[name][1]})" for name in names if name in self._errors]
        more = len(failed) - NAMED
        return ", ".join(failed[:NAMED]) + (f" and {more} more" if more > 0 else "")

    async def _make(self, asked: Collection[InternalTopic], allow: Allow, retry_ms: int) -> None:
        failed: dict[str, str] = {}
        try:
            await self._made(asked, allow, failed)
        except (KafkaError, StorageError) as error:
            failed |= {topic.name: wire_error(error).message for topic in asked}
        finally:
            self._making.difference_update(topic.name for topic in asked)
        until = self._clock.monotonic() + retry_ms / 1000
        for name, text in failed.items():
            self._errors[name] = until, text
            event("streams_topic_not_made", "warning", topic=name, error=text)

    async def _made(
        self, asked: Collection[InternalTopic], allow: Allow, failed: dict[str, str]
    ) -> None:
        await self._topics.authority.catch_up()
        async with self._topics.changing:
            plan = self._rules.plan(allow)
            for number, topic in enumerate(asked):
                await plan.breathe(number)
                if topic.name in self._topics.image.topics:
                    continue
                try:
                    factor = topic.replication_factor or -1
                    count = self._rules.partition_count_of(topic.partition_count, factor, {})
                    plan.add(topic.name, count, topic.settings)
                except KafkaError as error:
                    failed[topic.name] = error.message
            await self._topics.create(plan.topics)
        for made in plan.topics:
            event("streams_topic_made", topic=made.name, partitions=made.partition_count)

    def _forget_errors(self) -> None:
        now = self._clock.monotonic()
        kept = [(name, each) for name, each in self._errors.items() if each[0] > now]
        self._errors = dict(kept[-MAX_ERRORS:])
