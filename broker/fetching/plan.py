"""One fetch: which partitions it asks for and what they give, read now and again after waiting.

The byte rules are Kafka's (KIP-74): each partition gives up to its own limit while the request's
limit lasts, and the first partition that has anything gives a whole batch whatever its size.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from broker.fetching.damage import Unreadable, is_among, readable_part
from broker.fetching.sessions import FollowedPartition
from broker.partitions.partition import Partition
from broker.runtime.wire_error import wire_error
from broker.topics.metadata_image import MetadataImage
from protocol.apis.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    LeaderIdAndEpoch,
    PartitionData,
)
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError
from storage.files.file_slice import FetchData, Unverified
from storage.search.segment_access import NotInMemory


class Answer(NamedTuple):
    """Result of one partition; `partition` is None when there is no such partition."""

    wanted: FollowedPartition
    partition: Partition | None
    data: PartitionData

    @property
    def size_bytes(self) -> int:
        """Bytes of its records."""
        return 0 if self.data.records is None else len(self.data.records)


class DamagedRead(NamedTuple):
    """A fetch that hit damage."""

    partition: Partition
    offset: int
    """Offset that was asked for."""
    what: str


@dataclass(slots=True)
class FetchResult:
    """Results of one reading, in the order of the request; `watched`: all partitions read."""

    answers: list[Answer]
    watched: list[Partition]
    size_bytes: int
    has_error: bool
    unverified: list[Unverified] = field(default_factory=list)
    """Ranges to verify before any of this is served: then it is read again."""
    damage: list[DamagedRead] = field(default_factory=list)
    """Reads that are refused because the bytes are not what was written."""


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """The partitions in the order they are read, and the limits of the request."""

    wanted: Sequence[FollowedPartition]
    by_id: bool
    committed: bool
    min_bytes: int
    max_bytes: int
    news_only: bool = False
    """For sessions: partitions that have nothing new to tell give no answer."""
    each_whole: bool = False
    """Before KIP-74: every partition gives a batch, and the reader learns by how much it
    exceeds.
    """

    def read(
        self,
        image: MetadataImage,
        unreadable: Collection[Unreadable] = (),
        late: Collection[Unverified] = (),
    ) -> FetchResult:
        """Reads every partition; faults become error codes of their partition.

        `unreadable`: ranges that could not be verified. `late`: ranges that nobody waits for any
        longer; they give nothing this time.
        """
        result = FetchResult([], [], 0, has_error=False)
        remaining = self.max_bytes
        for wanted in self.wanted:
            partition = None
            try:
                partition = self._find(wanted, image)
                if partition.leadership is not None:
                    partition.check_leader_epoch(wanted.leader_epoch)
                result.watched.append(partition)
                if self.news_only and self._is_quiet(wanted, partition):
                    continue
                data = self._read(wanted, partition, remaining, result, (unreadable, late))
            except (KafkaError, StorageError) as fault:
                error = fault if isinstance(fault, KafkaError) else wire_error(fault)
                data = refusal(wanted.index, error.code)
                data.current_leader = _leader_elsewhere(partition)
                result.has_error = True
                if error.code == ErrorCode.CORRUPT_MESSAGE and partition is not None:
                    result.damage.append(DamagedRead(partition, wanted.fetch_offset, error.message))
            answer = Answer(wanted, partition, data)
            if not self.news_only or _is_news(answer):
                result.answers.append(answer)
                result.size_bytes += answer.size_bytes
                remaining -= answer.size_bytes
        return result

    def is_enough(self, result: FetchResult) -> bool:
        """True when the client wants this answer now, without waiting for more."""
        return result.has_error or result.size_bytes >= self.min_bytes or not self.wanted

    def _is_quiet(self, wanted: FollowedPartition, partition: Partition) -> bool:
        """The cheap way to know that a partition of a wide session has nothing to tell."""
        snapshot = partition.log.snapshot
        return (
            wanted.fetch_offset == snapshot.high_watermark == wanted.sent_high_watermark
            and snapshot.log_start_offset == wanted.sent_log_start_offset
            and not self.committed
        )

    def _find(self, wanted: FollowedPartition, image: MetadataImage) -> Partition:
        if self.by_id:
            return image.require_by_id(wanted.topic_id, wanted.index)
        return image.require(wanted.topic, wanted.index)

    def _read(
        self,
        wanted: FollowedPartition,
        partition: Partition,
        remaining: int,
        result: FetchResult,
        asked: tuple[Collection[Unreadable], Collection[Unverified]],
    ) -> PartitionData:
        if wanted.leader_epoch >= 0:  # here any other number is one that nobody knows
            partition.check_leader_epoch(wanted.leader_epoch)
        diverging = _diverging_epoch(wanted, partition)
        data, aborted = None, list[AbortedTransaction]()
        if diverging is None:
            data, aborted = self._data(wanted, partition, remaining, result, asked)
        answer = _answer(wanted.index, partition, data)
        if self.committed:
            answer.aborted_transactions = aborted
        if diverging is not None:
            answer.diverging_epoch = diverging
        return answer

    def _data(
        self,
        wanted: FollowedPartition,
        partition: Partition,
        remaining: int,
        result: FetchResult,
        asked: tuple[Collection[Unreadable], Collection[Unverified]],
    ) -> tuple[FetchData | None, list[AbortedTransaction]]:
        """Data, and what is aborted of it; once more when segments have left in between."""
        limit = min(wanted.max_bytes, remaining)
        whole_first = self.each_whole or not result.size_bytes
        unreadable, late = asked
        for _ in range(2):
            data = partition.read(
                wanted.fetch_offset, limit, committed=self.committed, whole_first=whole_first
            )
            if data is not None and data.unverified is not None:
                read_first = partial(
                    partition.read,
                    wanted.fetch_offset,
                    1,
                    committed=self.committed,
                    whole_first=True,
                )
                most_bytes = None if whole_first else limit
                data = readable_part(data, unreadable, read_first, most_bytes)
                data = _served_later(data, late, result)
            if data is None or not self.committed:
                return data, []
            with suppress(NotInMemory):
                return data, _aborted(partition, wanted, data)
        return None, []


def _served_later(
    data: FetchData, late: Collection[Unverified], result: FetchResult
) -> FetchData | None:
    """Add to the result what has to be settled first, unless nobody waits for it any longer."""
    if data.unverified is None:
        return data
    if is_among(data.unverified, late):
        return None
    result.unverified.append(data.unverified)
    return data


def _is_news(answer: Answer) -> bool:
    """True when a session must include it (KIP-227)."""
    wanted, data = answer.wanted, answer.data
    return (
        answer.size_bytes > 0
        or data.error_code != 0
        or data.diverging_epoch is not None
        or data.high_watermark != wanted.sent_high_watermark
        or data.log_start_offset != wanted.sent_log_start_offset
    )


def _answer(index: int, partition: Partition, data: FetchData | None) -> PartitionData:
    snapshot = partition.log.snapshot
    return PartitionData(
        partition_index=index,
        high_watermark=snapshot.high_watermark,
        last_stable_offset=snapshot.last_stable_offset,
        log_start_offset=snapshot.log_start_offset,
        aborted_transactions=None,
        records=b"" if data is None or not data.slices else data.slices[0],
    )


def _aborted(
    partition: Partition, wanted: FollowedPartition, data: FetchData
) -> list[AbortedTransaction]:
    if not data.slices:
        return []
    return [
        AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in partition.log.search.aborted_in(wanted.fetch_offset, data)
    ]


def _diverging_epoch(wanted: FollowedPartition, partition: Partition) -> EpochEndOffset | None:
    """KIP-595: where the client's log and ours part, when it says what it fetched last."""
    if wanted.last_fetched_epoch < 0:
        return None
    epoch, end_offset = partition.epoch_end_offset(wanted.last_fetched_epoch)
    if epoch < 0:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"Epoch {wanted.last_fetched_epoch} is unknown here"
        )
    if epoch == wanted.last_fetched_epoch and end_offset >= wanted.fetch_offset:
        return None
    return EpochEndOffset(epoch=epoch, end_offset=end_offset)


def _leader_elsewhere(partition: Partition | None) -> LeaderIdAndEpoch | None:
    """For clients that know KIP-951: they need not ask for metadata first."""
    leader = None if partition is None else partition.leader_elsewhere
    if leader is None:
        return None
    return LeaderIdAndEpoch(leader_id=leader.node_id, leader_epoch=leader.epoch)


def refusal(index: int, code: int) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=code,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        aborted_transactions=None,
        records=b"",
    )
