"""One call of a redrive: from letter to record, piece by piece, within the bounds of the call.

The intent is durable, then the records are, as their topics promise for acks=all, then the progress
is. Each piece has a producer id of its own, with one batch in each partition: a piece that is sent
again after a crash repeats no batch that is there, as long as the partition remembers the producer.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

from broker.groups.coordinator import GroupCoordinator
from broker.groups.redrive.elsewhere import OtherNodes
from broker.groups.redrive.progress import Intent, Position, RedriveProgress
from broker.guards.admission import Intake
from broker.partitions.partition import ACKS_ALL, Partition
from broker.partitions.partition_services import Sender
from broker.record_times.audit_stream import AuditStream
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import wait_for
from broker.runtime.probes import BrokerProbes
from broker.runtime.wire_error import wire_error
from broker.share.letters.returned import (
    MOST_LETTERS,
    ChunkTerms,
    LetterChunk,
    Place,
    batches_of,
    read_letters,
)
from broker.share.letters.source import LocalRecords, RecordSource
from broker.topics.metadata_image import TopicImage
from broker.topics.topic_catalog import TopicCatalog
from protocol.errors import DecodeError, ErrorCode, KafkaError
from storage.env import Clock
from storage.errors import StorageError
from storage.segment.log_snapshot import AppendResult

_THERE_ALREADY = frozenset({
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
})  # fmt: skip


_Begun = AppendResult | Deferred[AppendResult] | asyncio.Future[None] | KafkaError
"""An append, here or in another node; an error that came at once."""


class ProducerIdSource(Protocol):
    """Source of producer ids."""

    async def allocate(self) -> int:
        """A new id. Raises StorageError."""


class RedriveParts(NamedTuple):
    """The services that it works with."""

    topics: TopicCatalog
    groups: GroupCoordinator
    clock: Clock
    probes: BrokerProbes
    intake: Intake
    audit: AuditStream | None
    producer_ids: ProducerIdSource
    other_nodes: OtherNodes | None
    """Partitions that other nodes lead; None where no node can be asked."""


class RedriveAsked(NamedTuple):
    """One call: which letters, who asks, and its bounds."""

    group: str
    letters: TopicImage
    sender: Sender
    may_write: Callable[[str], bool]
    most_letters: int
    most_bytes: int
    seconds: float


class RedriveStopped(NamedTuple):
    """The place that a call did not get over, and why."""

    partition: int
    offset: int
    error: KafkaError


@dataclass(slots=True)
class RedriveOutcome:
    """Result of one call."""

    letters: int = 0
    """Sent back."""
    size_bytes: int = 0
    passed_over: Counter[str] = field(default_factory=Counter)
    stopped: RedriveStopped | None = None


class RedriveCall:
    """One call under way. Used from the event loop only."""

    def __init__(self, parts: RedriveParts, asked: RedriveAsked, progress: RedriveProgress) -> None:
        self.outcome = RedriveOutcome()
        self._parts = parts
        self._asked = asked
        self._progress = progress
        self._until = parts.clock.monotonic() + asked.seconds

    async def run(self) -> None:
        """Goes from partition to partition; ends at a bound, or at an error."""
        self._progress.check()
        positions = self._progress.positions()
        for partition in self._asked.letters.partitions:
            if isinstance(partition, Partition):
                await self._send_all(partition, positions.get(partition.index, Position(0)))
            if self._is_over:
                return

    @property
    def _is_over(self) -> bool:
        outcome, asked = self.outcome, self._asked
        return (
            outcome.stopped is not None
            or outcome.letters >= asked.most_letters
            or outcome.size_bytes >= asked.most_bytes
            or self._parts.clock.monotonic() >= self._until
        )

    async def _send_all(self, letters: Partition, at: Position) -> None:
        try:
            start, end = await bounds_of(letters, self._parts.other_nodes)
            at = at._replace(offset=max(at.offset, start))
            while at.offset < end and not self._is_over:
                at = await self._send_some(letters, at, end)
        except (StorageError, DecodeError, KafkaError) as error:
            self.outcome.stopped = RedriveStopped(letters.index, at.offset, _refusal(error))

    async def _send_some(self, letters: Partition, at: Position, end: int) -> Position:
        """Sends one piece; the position behind it, durably. Raises, and it is to be sent again."""
        chunk = await self._read(letters, at, end)
        self._check_rights(chunk)
        if chunk.rows:
            intent = at.intent
            if intent is None:
                intent = Intent(chunk.next_offset, await self._parts.producer_ids.allocate())
                await self._progress.commit(letters.index, Position(at.offset, intent))
            await self._append_all(letters, chunk, intent, is_again=at.intent is not None)
        behind = Position(chunk.next_offset)
        await self._progress.commit(letters.index, behind)
        self.outcome.letters += chunk.letters
        self.outcome.size_bytes += chunk.size_bytes
        self.outcome.passed_over.update(chunk.passed_over)
        return behind

    async def _read(self, letters: Partition, at: Position, end: int) -> LetterChunk:
        left = self._asked.most_letters - self.outcome.letters
        terms = ChunkTerms(self._asked.group, self._source_of, end, min(left, MOST_LETTERS))
        if at.intent is not None:
            terms = terms._replace(end=min(at.intent.end, end), most_letters=None)
        read = partial(read_letters, self._source(letters), at.offset, terms)
        others = self._parts.other_nodes
        if others is not None:
            return await others.run(read)
        return await wait_for(letters.on_lane_of_all(read))

    def _source_of(self, place: Place) -> RecordSource | None:
        """From a lane."""
        found = self._origin(place)
        return None if found is None else self._source(found)

    def _source(self, partition: Partition) -> RecordSource:
        """KafkaError for a partition of another node that cannot be asked."""
        if partition.leader_elsewhere is None:
            return LocalRecords(partition.log)
        return _reachable(partition, self._parts.other_nodes).source(partition)

    def _origin(self, place: Place) -> Partition | None:
        """The partition of a letter's record. None where nothing goes back to: the topic is gone,
        or is the broker's own, or one of letters by itself.
        """
        name, index = place
        topics = self._parts.topics
        if name in topics.internal_topics or name == self._asked.letters.name:
            return None
        found = topics.image.partition(name, index)
        return found if isinstance(found, Partition) else None

    def _check_rights(self, chunk: LetterChunk) -> None:
        for name in sorted({topic for topic, _ in chunk.rows}):
            if not self._asked.may_write(name):
                text = f"{self._asked.sender.principal} may not WRITE topic {name!r}"
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, text)

    async def _append_all(
        self, letters: Partition, chunk: LetterChunk, intent: Intent, *, is_again: bool
    ) -> None:
        """Appends all batches, and waits until they are durable. The first error is raised when
        none is under way any more.
        """
        made = partial(
            list[tuple[Place, bytearray]], batches_of(chunk, intent.producer_id, self._most_bytes)
        )
        batches = await wait_for(letters.on_lane(made))
        begun = [(place, batch, self._begin(place, batch)) for place, batch in batches]
        errors = [
            await self._ended(place, batch, outcome, is_again=is_again)
            for place, batch, outcome in begun
        ]
        first = next((each for each in errors if each is not None), None)
        if first is not None:
            raise first

    def _most_bytes(self, place: Place) -> int:
        found = self._origin(place)
        return 0 if found is None else found.log.config.max_message_bytes

    def _begin(self, place: Place, batch: bytearray) -> _Begun:
        origin = self._origin(place)
        if origin is None:
            text = f"{place[0]}-{place[1]} is gone"
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        try:
            if origin.leader_elsewhere is not None:
                others = _reachable(origin, self._parts.other_nodes)
                return asyncio.ensure_future(others.append(origin, bytes(batch)))
            if self._parts.intake.is_guarded:
                self._parts.intake.admit(len(batch))
            return origin.writer.append(memoryview(batch), ACKS_ALL, self._asked.sender)
        except KafkaError as error:
            return error

    async def _ended(
        self,
        place: Place,
        batch: bytearray,
        outcome: _Begun,
        *,
        is_again: bool,
    ) -> KafkaError | None:
        try:
            if isinstance(outcome, KafkaError):
                raise outcome
            if isinstance(outcome, asyncio.Future):
                await outcome  # the other node counts it
                return None
            result = await wait_for(outcome) if isinstance(outcome, Deferred) else outcome
        except KafkaError as error:
            # a letter was lost meanwhile, and the batch is not quite that of before
            return None if is_again and error.code in _THERE_ALREADY else error
        origin = self._origin(place)
        if origin is not None and not result.duplicate:
            count, size = result.last_offset - result.base_offset + 1, len(batch)
            self._parts.probes.appended(origin.topic, size, count, result.skew_ms)
            if self._parts.audit is not None:
                self._parts.audit.stored(origin, self._asked.sender, result, count, size)
        return None


async def bounds_of(partition: Partition, others: OtherNodes | None) -> tuple[int, int]:
    """Log start and high watermark, wherever it is led. KafkaError."""
    if partition.leader_elsewhere is None:
        snapshot = partition.log.snapshot
        return snapshot.log_start_offset, snapshot.high_watermark
    return await _reachable(partition, others).bounds(partition)


def _reachable(partition: Partition, others: OtherNodes | None) -> OtherNodes:
    if others is None:
        text = f"another node leads {partition}, and nodes have no way to each other"
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
    return others


def _refusal(error: StorageError | DecodeError | KafkaError) -> KafkaError:
    if isinstance(error, KafkaError):
        return error
    if isinstance(error, StorageError):
        return wire_error(error)
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"The letters cannot be read: {error}")
