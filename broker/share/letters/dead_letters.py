"""Dead letters on their way to their topic, which a group names and the topic allows (KIP-1191).

A letter goes to the partition of its record's number, modulo the count of the target's, by Produce
where another node of a fleet leads that. It is as durable as the topic promises for
acks=all before anybody hears of it. Used from the event loop only.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial

from broker.partitions.partition import ACKS_ALL, Partition
from broker.runtime.deferred import Deferred
from broker.runtime.event_log import event
from broker.runtime.gathering import wait_for
from broker.runtime.probes import BrokerProbes
from broker.share.letters.letter import LetterTerms, batch_from
from broker.share.states import GivenUp
from broker.topics.creation import TopicRules
from broker.topics.topic_catalog import TopicCatalog
from config.resources.group import GroupConfig
from config.store import ConfigStore
from protocol.errors import KafkaError
from storage.env import Clock
from storage.validation.internal_batch import own_batch

ENABLED = "errors.deadletterqueue.group.enable"
AppendElsewhere = Callable[[Partition, bytes], Awaitable[None]]
"""Appends a batch to a partition that another node leads, durably. KafkaError."""
MOST_COUNTED = 10_000
"""Share partitions of which letters are counted apart; of more only all together."""
NONE_YET: Counter[str] = Counter()


class NoLetter(Exception):  # noqa: N818 - the state it found
    """Raised when no letter can be written; the text says why."""


async def nobody_elsewhere(partition: Partition, _: bytes) -> None:
    """The `AppendElsewhere` of a broker that knows no other. KafkaError."""
    partition.check_leads()


class DeadLetters:
    """Writes dead letters."""

    def __init__(
        self,
        topics: TopicCatalog,
        rules: TopicRules,
        config: ConfigStore,
        clock: Clock,
        probes: BrokerProbes,
        *,
        elsewhere: AppendElsewhere,
    ) -> None:
        """Nothing is looked up before the first letter. `elsewhere` appends at other nodes."""
        self.written: Counter[str] = Counter()
        """Letters by reason."""
        self._by_origin: dict[tuple[str, str, int], Counter[str]] = {}
        self.failures = 0
        """Attempts that failed; each is made again."""
        self._topics = topics
        self._rules = rules
        self._config = config
        self._clock = clock
        self._probes = probes
        self._elsewhere = elsewhere
        self._tasks: set[asyncio.Task[None]] = set()

    def written_of(self, group: str, topic: str, index: int) -> Counter[str]:
        """Letters of one share partition by reason, since the start. From any thread."""
        return self._by_origin.get((group, topic, index), NONE_YET).copy()

    def _count(self, origin: Partition, group: str, reasons: list[str]) -> None:
        self.written.update(reasons)
        place = group, origin.topic, origin.index
        counts = self._by_origin.get(place)
        if counts is None:
            counts = Counter()
            if len(self._by_origin) < MOST_COUNTED:
                self._by_origin[place] = counts
        counts.update(reasons)

    def send(
        self, origin: Partition, group: str, given_up: list[GivenUp], settings: GroupConfig
    ) -> Deferred[None]:
        """Settled when the letters of all that is given up are durable. Fails with any error."""
        answer: Deferred[None] = Deferred()
        work = self._send(origin, group, sorted(given_up), settings)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(partial(self._sent, answer))
        return answer

    def _sent(self, answer: Deferred[None], task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None:
            answer.resolve(None)
        else:
            self.failures += 1
            answer.fail(error)

    async def _send(
        self, origin: Partition, group: str, given_up: list[GivenUp], settings: GroupConfig
    ) -> None:
        copies = settings.errors_deadletterqueue_copy_record_enable
        target = await self._target(origin, settings.errors_deadletterqueue_topic_name)
        offset, last = given_up[0].first, given_up[-1].last
        while offset <= last:
            most_bytes = target.log.config.max_message_bytes
            terms = LetterTerms(group, copies, self._clock.now_ms(), most_bytes)
            found = await wait_for(
                origin.on_lane(partial(batch_from, origin.log, offset, given_up, terms), offset)
            )
            if found.batch is not None:
                await self._append(target, found.batch, terms.now_ms, len(found.reasons))
                self._count(origin, group, found.reasons)
            offset = found.next_offset

    async def _target(self, origin: Partition, name: str) -> Partition:
        """The partition for the letters of one. NoLetter, KafkaError."""
        prefix = self._config.broker_config.errors_deadletterqueue_topic_name_prefix
        if not name.startswith(prefix):
            raise NoLetter(f"the name {name} does not begin with {prefix}")
        if name == origin.topic or name in self._topics.internal_topics:
            raise NoLetter(f"{name} is the topic of the records, or the broker's own")
        if name not in self._topics.image.topics:
            await self._make(origin, name)
        topic = self._topics.image.topics.get(name)
        if topic is None:
            raise NoLetter(f"there is no topic {name}")
        config = topic.partitions[0].log.config
        if not config.errors_deadletterqueue_group_enable:
            raise NoLetter(f"{name} does not allow for it: {ENABLED} is false")
        if "compact" in config.cleanup_policy:
            raise NoLetter(f"{name} is compacted")
        found = topic.partitions[origin.index % len(topic.partitions)]
        if not isinstance(found, Partition):
            raise NoLetter(f"no partition of {name} is at work")
        return found

    async def _append(self, target: Partition, batch: bytearray, now_ms: int, count: int) -> None:
        """Returns when the letters are durable. KafkaError."""
        if target.leader_elsewhere is not None:
            await self._elsewhere(target, bytes(batch))
            return
        outcome = target.writer.append_own(own_batch(batch, now_ms), ACKS_ALL)
        if isinstance(outcome, Deferred):
            await wait_for(outcome)
        self._probes.appended(target.topic, len(batch), count, None)

    async def _make(self, origin: Partition, name: str) -> None:
        if not self._config.broker_config.errors_deadletterqueue_auto_create_topics_enable:
            return
        source = self._topics.image.topics.get(origin.topic)
        async with self._topics.changing:
            if source is None or name in self._topics.image.topics:
                return
            plan = self._rules.plan()
            try:
                plan.add(name, len(source.partitions), {ENABLED: "true"})
            except KafkaError as error:
                raise NoLetter(error.message) from error
            await self._topics.create(plan.topics)
        event("dead_letter_topic_made", topic=name)
