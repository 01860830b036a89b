"""Writes records with bad times to their quarantine topic, which it finds or makes (time.md 2).

The quarantine of a topic is named by `horolog.quarantine.topic`. It is made when it is first used:
one partition, dated by the broker, as durable as the topic, at most about a gigabyte or a week.
Created by hand, it may have more partitions; a record goes to the one of its own number, modulo
their count.

No ring of quarantines can wait for itself: a topic that quarantines records accepts none, and while
a write waits for its quarantine, no other quarantined record waits for that partition. To make one
is a change of topics, and a change of topics may wait for the write: a topic's deletion does. So a
write gives up when its topic goes, or when other changes take `PATIENCE_SECONDS`. Where there
is no use of a quarantine, the batch is refused as under policy `reject`; where its disk fails, the
producer receives an error code and retries. Transactions do not cover quarantined records: these
stay, also when the transaction is aborted. Used from the event loop only.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from broker.runtime.deferred import Deferred
from broker.runtime.event_log import event
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError
from storage.segment.log_snapshot import AppendResult
from storage.validation.batch_rules import refusal

if TYPE_CHECKING:
    from broker.partitions.partition_services import PendingRewrite
    from broker.partitions.writer import PartitionWriter
    from broker.runtime.probes import BrokerProbes
    from broker.topics.creation import TopicRules
    from broker.topics.metadata_image import TopicImage
    from broker.topics.topic_catalog import TopicCatalog
    from storage.log.log import Log

SUFFIX = ".quarantine"
PATIENCE_SECONDS = 10
"""So long a write waits for other changes of topics; a client gives a request 30 s."""
SETTINGS = {
    "cleanup.policy": "delete",
    "message.timestamp.type": "LogAppendTime",
    "horolog.timestamp.policy": "accept",
    "retention.ms": str(7 * 86_400_000),
    "retention.bytes": str(1 << 30),
    "segment.bytes": str(128 << 20),
}
"""Of a quarantine that the broker makes."""


class Unusable(Exception):  # noqa: N818 - the state it found
    """Raised when the topic cannot take quarantined records; the text says why."""


@dataclass(frozen=True, slots=True)
class QuarantineWrite:
    """A quarantine write: source, target, acks, and the answer that waits for it."""

    origin: Log
    rewrite: PendingRewrite
    name: str
    acks: int
    answer: Deferred[AppendResult]


class Quarantine:
    """Stores quarantined records."""

    def __init__(self, topics: TopicCatalog, rules: TopicRules, probes: BrokerProbes) -> None:
        """Nothing is looked up before the first record."""
        self.refusals: Counter[str] = Counter()
        """Batches that were refused because of their quarantine: unusable, storage."""
        self._topics = topics
        self._rules = rules
        self._probes = probes
        self._makers: set[asyncio.Task[None]] = set()
        self._unmade: dict[Log, QuarantineWrite] = {}
        """Writes whose quarantine is being made, by their origin: one of each has the turn."""

    def store(self, origin: Log, rewrite: PendingRewrite, acks: int) -> Deferred[AppendResult]:
        """Stores the quarantined records of a batch, as durably as `acks` asks. Fails with
        KafkaError.
        """
        name = rewrite.mistimed.rewrite.quarantine_topic or origin.topic + SUFFIX
        errand = QuarantineWrite(origin, rewrite, name, acks, Deferred())
        source = self._topics.image.partition(origin.topic, origin.partition)
        if source is None or source.log is not origin:
            errand.answer.fail(_gone(origin))
        elif name in self._topics.image.topics:
            self._append(errand)
        else:
            self._unmade[origin] = errand
            maker = asyncio.get_running_loop().create_task(self._make(errand))
            self._makers.add(maker)
            maker.add_done_callback(partial(self._made, errand))
        return errand.answer

    def origin_went(self, origin: Log) -> None:
        """The log is deleted: its write waits no longer for a quarantine to be made."""
        errand = self._unmade.pop(origin, None)
        if errand is not None:
            errand.answer.fail(_gone(origin))

    def _append(self, errand: QuarantineWrite) -> None:
        aside = errand.rewrite.rewritten.aside
        assert aside is not None
        try:
            stored = self._partition(errand).append_own(aside, errand.acks)
        except (Unusable, KafkaError) as error:
            self._refuse(errand, error)
            return
        if isinstance(stored, Deferred):
            stored.listen(partial(self._appended, errand))
        else:
            self._appended(errand, stored, None)

    def _appended(
        self, errand: QuarantineWrite, result: AppendResult | None, error: BaseException | None
    ) -> None:
        if result is None:
            assert error is not None
            self._refuse(errand, error)
            return
        aside = errand.rewrite.rewritten.aside
        assert aside is not None
        self._probes.appended(errand.name, len(aside.records), aside.facts.count, None)
        errand.answer.resolve(result)

    def _partition(self, errand: QuarantineWrite) -> PartitionWriter:
        origin, name = errand.origin, errand.name
        topic: TopicImage | None = self._topics.image.topics.get(name)
        if name == origin.topic:
            raise Unusable("a topic cannot be its own quarantine")
        if name in self._topics.internal_topics:
            raise Unusable("it is the broker's own")
        if topic is None:
            raise Unusable("it was deleted at this moment")
        partition = topic.partitions[origin.partition % len(topic.partitions)]
        config = partition.log.config
        if config.horolog_timestamp_policy == "quarantine":
            raise Unusable("its own horolog.timestamp.policy is quarantine")
        if "compact" in config.cleanup_policy:
            raise Unusable("its cleanup.policy is compact")
        writer = partition.writer
        if writer.awaits_quarantine:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"The quarantine {name} waits for one of its own"
            )
        return writer

    async def _make(self, errand: QuarantineWrite) -> None:
        topics, name = self._topics, errand.name
        settings = {**SETTINGS, "horolog.durability": errand.origin.config.horolog_durability}
        async with _changing(topics):
            if errand.answer.settled or name in topics.image.topics:
                return
            plan = self._rules.plan()
            try:
                plan.add(name, 1, settings)
            except KafkaError as error:
                raise Unusable(error.message) from error
            await topics.create(plan.topics)
        event("quarantine_made", topic=name)

    def _made(self, errand: QuarantineWrite, maker: asyncio.Task[None]) -> None:
        self._makers.discard(maker)
        error = _stopping() if maker.cancelled() else maker.exception()
        if errand.answer.settled:
            return
        del self._unmade[errand.origin]
        if error is not None:
            self._refuse(errand, error)
        else:
            self._append(errand)

    def _refuse(self, errand: QuarantineWrite, error: BaseException) -> None:
        """Fails a quarantine write with the error for the producer."""
        log = errand.origin
        event(
            "quarantine_failed", "warning",
            topic=log.topic, partition=log.partition, quarantine=errand.name, error=error,
        )  # fmt: skip
        if isinstance(error, Unusable):
            self.refusals["unusable"] += 1
            mistimed = errand.rewrite.mistimed
            rewrite = mistimed.rewrite
            error = refusal(mistimed.batch.header, rewrite.payload, rewrite.limits)
        elif isinstance(error, KafkaError | StorageError):
            self.refusals["storage"] += 1
            text = f"The quarantine {errand.name} failed: {error}"
            error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, text)
        errand.answer.fail(error)


@asynccontextmanager
async def _changing(topics: TopicCatalog) -> AsyncIterator[None]:
    """A change of topics, unless others take too long: KAFKA_STORAGE_ERROR."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await topics.changing.acquire()
    except TimeoutError:
        text = f"Other changes of topics took {PATIENCE_SECONDS} s"
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, text) from None
    try:
        yield
    finally:
        topics.changing.release()


def _stopping() -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "The broker is stopping")


def _gone(origin: Log) -> KafkaError:
    text = f"The topic of partition {origin.topic}-{origin.partition} was deleted"
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
