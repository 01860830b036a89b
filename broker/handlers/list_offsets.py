"""ListOffsets: which offset belongs to a time, or to one of the special times (semantics.md 5).

Special times are answered from memory, and so are searches that need no more than that; others run
on a lane, as do all but the first of a request with many. Only what a consumer may see is answered:
a match at or above the high watermark (or the last stable offset) is no match.
"""

import asyncio
from collections.abc import Generator, Iterator
from functools import partial
from typing import NamedTuple

from broker.partitions.partition import Partition, last_fetchable
from broker.runtime.answers import AnswerRoom, Answers
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after, gather, wait_for
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.runtime.unpacking import too_much_of_a_request
from broker.topics.topic_catalog import TopicCatalog
from protocol.acls import AclOperation, ResourceType
from protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from protocol.errors import ErrorCode, KafkaError
from storage.env import Clock
from storage.search.file_times import visible_to_consumers
from storage.segment.log_snapshot import TimestampOffset
from storage.validation.unpacking import TooMuchWork

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = range(-1, -7, -1)
SPECIAL_SINCE_VERSION = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING: 11,
}
OFFSET_LISTS_UNTIL_VERSION = 0
ANSWERED_AT_ONCE = 32  # searches of one request on the loop: two milliseconds; the rest on lanes
FEW = 1000  # partitions whose searches all begin at once
BYTES_A_SEARCH = 4 * 1024 * 1024  # unpacked, beside what any request may
NOT_AVAILABLE_SINCE_VERSION = 5
READ_COMMITTED = 1
CONSUMER = -1

Found = TimestampOffset | None
Answer = ListOffsetsPartitionResponse | Deferred[ListOffsetsPartitionResponse]


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    probes: BrokerProbes
    clock: Clock
    answers: Answers


Context = RequestContext[Services]


def handle(
    request: ListOffsetsRequest, context: Context
) -> ListOffsetsResponse | Deferred[ListOffsetsResponse]:
    """One answer per partition asked for; one that is asked for twice is refused."""
    context.asks(AclOperation.DESCRIBE, ResourceType.TOPIC)
    respond = partial(_respond, request)
    if sum(len(topic.partitions) for topic in request.topics) > FEW:
        make = context.services.answers.make
        return make(partial(_one_after_another, request, context), respond, beside=True)
    return gather([each for each in _answers(request, context) if each is not None], respond)


def _one_after_another(
    request: ListOffsetsRequest, context: Context, room: AnswerRoom
) -> Iterator[ListOffsetsPartitionResponse | None]:
    """The answers of very many partitions: each search begins after the one before."""
    for each in _answers(request, context):
        if not isinstance(each, Deferred):
            yield each
            continue
        room.waits_for = waiting = asyncio.ensure_future(wait_for(each))
        yield None
        yield waiting.result()


def _answers(request: ListOffsetsRequest, context: Context) -> Iterator[Answer | None]:
    """In the order of the request; None where others may have their turn."""
    twice = yield from _asked_twice(request)
    count = 0
    for topic in request.topics:
        name = topic.name
        for each in topic.partitions:
            is_twice = (name, each.partition_index) in twice
            at_once = count < ANSWERED_AT_ONCE
            yield _answer(name, each, request, context, is_twice=is_twice, at_once=at_once)
            count += 1


def _asked_twice(request: ListOffsetsRequest) -> Generator[None, None, set[tuple[str, int]]]:
    """Partitions that are named more than once in the request, which keeps the last of each."""
    topics = request.topics
    if len(topics) == 1 and len(topics[0].partitions) == 1:
        return set()
    asked, twice = set[tuple[str, int]](), set[tuple[str, int]]()
    for topic in topics:
        kept: dict[int, ListOffsetsPartition] = {}
        for each in topic.partitions:
            key = topic.name, each.partition_index
            (twice if key in asked else asked).add(key)
            kept[each.partition_index] = each
            yield
        topic.partitions = list(kept.values())
    return twice


def _answer(
    name: str,
    query: ListOffsetsPartition,
    request: ListOffsetsRequest,
    context: Context,
    *,
    is_twice: bool,
    at_once: bool,
) -> Answer:
    try:
        context.require(AclOperation.DESCRIBE, ResourceType.TOPIC, name)
        _check_asked_once(is_twice=is_twice)
        partition = context.services.topics.image.require(name, query.partition_index)
        partition.check_leader_epoch(query.current_leader_epoch)
        if context.api_version <= OFFSET_LISTS_UNTIL_VERSION:
            return _listed(partition, query, request, context)
        started = context.services.probes.monotonic()
        found = _find(partition, query.timestamp, request, context, at_once=at_once)
    except KafkaError as error:
        return _refusal(query, context, error)
    if isinstance(found, Deferred):
        succeed = partial(_found, query, context.services.probes, started)
        return after(_with_retry_code(found, context), succeed, partial(_refusal, query, context))
    return _found(query, context.services.probes, started, found)


def _with_retry_code(found: Deferred[Found], context: Context) -> Deferred[Found]:
    """A search beyond the request's budget has a code that clients ask again for (as KIP-207)."""
    answer: Deferred[Found] = Deferred()
    is_known = context.api_version >= NOT_AVAILABLE_SINCE_VERSION
    code = ErrorCode.OFFSET_NOT_AVAILABLE if is_known else ErrorCode.LEADER_NOT_AVAILABLE

    def settle(value: Found, error: BaseException | None) -> None:
        if error is None:
            answer.resolve(value)
        else:
            is_beyond = isinstance(error, TooMuchWork)
            answer.fail(too_much_of_a_request(code) if is_beyond else error)

    found.listen(settle)
    return answer


def _listed(
    partition: Partition,
    query: ListOffsetsPartition,
    request: ListOffsetsRequest,
    context: Context,
) -> Deferred[ListOffsetsPartitionResponse]:
    """Version 0: starts of segments (semantics.md 5.5)."""
    if query.timestamp < EARLIEST:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Timestamp {query.timestamp} has no meaning in ListOffsets version 0",
        )
    now_ms = context.services.clock.now_ms()
    starts = partition.find_segment_starts(query.timestamp, query.max_num_offsets, now_ms)

    def answer(offsets: list[int]) -> ListOffsetsPartitionResponse:
        if request.replica_id == CONSUMER:
            offsets = visible_to_consumers(offsets, partition.log.snapshot.high_watermark)
        return ListOffsetsPartitionResponse(
            partition_index=query.partition_index, old_style_offsets=offsets
        )

    return after(starts, answer, partial(_refusal, query, context))


def _check_asked_once(*, is_twice: bool) -> None:
    if is_twice:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The partition is in the request twice")


def _find(
    partition: Partition,
    timestamp: int,
    request: ListOffsetsRequest,
    context: Context,
    *,
    at_once: bool,
) -> Found | Deferred[Found]:
    committed = request.isolation_level == READ_COMMITTED
    context.budget.bytes_left += BYTES_A_SEARCH
    fetchable = last_fetchable(partition.log.snapshot, committed=committed)
    if timestamp >= 0:
        return partition.find_timestamp(
            timestamp, fetchable, at_once=at_once, budget=context.budget
        )
    since = SPECIAL_SINCE_VERSION.get(timestamp)
    if since is None or context.api_version < since:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Timestamp {timestamp} has no meaning in ListOffsets version {context.api_version}",
        )
    if timestamp == MAX_TIMESTAMP:
        return partition.find_max_timestamp(fetchable, at_once=at_once, budget=context.budget)
    return _special(partition, timestamp, committed=committed, replica_id=request.replica_id)


def _special(partition: Partition, timestamp: int, *, committed: bool, replica_id: int) -> Found:
    snapshot = partition.log.snapshot
    if timestamp == LATEST:
        offset = (
            last_fetchable(snapshot, committed=committed)
            if replica_id == CONSUMER
            else snapshot.log_end_offset
        )
        return TimestampOffset(-1, offset, partition.leader_epoch)
    if timestamp == EARLIEST:
        return TimestampOffset(-1, snapshot.log_start_offset, partition.earliest_epoch)
    if timestamp == EARLIEST_LOCAL:
        return _with_epoch(partition, snapshot.local_start_offset)
    return _of_the_tier(partition, timestamp)


def _of_the_tier(partition: Partition, timestamp: int) -> Found:
    """The last offset in the tier's store, or the first one that is not copied (KIP-1005, 1023)."""
    log = partition.log
    if not log.config.remote_storage_enable:
        return None
    end = max(log.tiers.uploaded_end, log.snapshot.log_start_offset)
    if timestamp == EARLIEST_PENDING:
        return _with_epoch(partition, end)
    return (
        _with_epoch(partition, end - 1)
        if log.tiers.uploaded_end > log.snapshot.log_start_offset
        else None
    )


def _with_epoch(partition: Partition, offset: int) -> Found:
    if offset == partition.log.snapshot.log_start_offset:
        return TimestampOffset(-1, offset, partition.earliest_epoch)
    epoch = partition.epochs.epoch_at(offset)
    return TimestampOffset(-1, offset, -1 if epoch is None else epoch)


def _found(
    query: ListOffsetsPartition, probes: BrokerProbes, started: float, found: Found
) -> ListOffsetsPartitionResponse:
    if query.timestamp >= 0:
        probes.time_lookup.observe(probes.monotonic() - started)
    if found is None:
        return ListOffsetsPartitionResponse(partition_index=query.partition_index)
    return ListOffsetsPartitionResponse(
        partition_index=query.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


def _refusal(
    query: ListOffsetsPartition, context: Context, error: KafkaError
) -> ListOffsetsPartitionResponse:
    context.count_error(error.code)
    return ListOffsetsPartitionResponse(
        partition_index=query.partition_index, error_code=error.code
    )


def _respond(
    request: ListOffsetsRequest, answers: list[ListOffsetsPartitionResponse]
) -> ListOffsetsResponse:
    rest = iter(answers)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[next(rest) for _ in topic.partitions]
            )
            for topic in request.topics
        ]
    )
