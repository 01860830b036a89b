"""/api/share-groups/{group}/records: every record that a share group is not done with, by range.

A page holds ranges of neighbouring offsets that are alike, in the order of topics, partitions and
offsets, each with the state it is in, who has it until when, in which delivery, and both times of
its first record. When a record that waits is due is read from the log again, a piece at a time.

A tier's store that fails is asked once for a page: the page says so, and has no times of what only
the store has.
"""

from collections.abc import Iterator
from typing import NamedTuple

from broker.http.port.parameters import Asked, Parameter, ParameterKind, count
from broker.http.port.route import HttpRoute
from broker.http.resources.share_groups import SEES_GROUP, ShareGroupServices, partitions_of
from broker.share.ages import Unfinished
from broker.share.listing import FINISHED, WAITING, ListedRange, listed
from broker.share.share_reads import ShareReads
from broker.share.state.coordinator import ShareCoordinator
from broker.share.waits.due_ranges import DueRanges, due_ranges
from broker.share.waits.due_times import DelayTerms
from broker.topics.topic_catalog import TopicCatalog
from config.quantities import instant, instant_or_none
from config.store import ConfigStore
from storage.env import Clock
from storage.errors import CorruptLog, StorageError
from storage.search.segment_access import NotInMemory
from storage.search.time_lag import OffsetTimes

MAX_RANGES, DEFAULT_RANGES = 1000, 100
MAX_PIECES = 8
"""Pieces of logs that one page reads for due times."""


class ShareRecordServices(NamedTuple):
    """The services that the answers are made with."""

    share_reads: ShareReads
    share_states: ShareCoordinator
    topics: TopicCatalog
    clock: Clock
    config: ConfigStore


class Cursor(NamedTuple):
    """The place where a page begins."""

    topic: str = ""
    partition: int = -1
    offset: int = 0


class _Page:
    """A page in the making."""

    def __init__(self, services: ShareRecordServices, asked: Asked) -> None:
        self.services = services
        self.limit: int = asked.fields["limit"]
        self.ranges: list[dict[str, object]] = []
        self.next: Cursor | None = None
        self.terms = _terms(services, asked.path["group"])
        self.fault: str | None = None
        """Fault of the tier's store; it is not asked again."""
        self._pieces = 0

    def add(self, found: Unfinished, begin: int) -> None:
        """Adds the ranges of one partition; sets `next` when there is no room for more."""
        served = self.services.share_reads.partitions.find(found.key)
        state = self.services.share_states.states.get(found.key)
        for each in listed(served, state, max(begin, found.offset)):
            self._add(found, each)
            if self.next is not None:
                return

    def _add(self, found: Unfinished, each: ListedRange) -> None:
        if each.state != WAITING:
            self._put(found, each, None)
            return
        at = each.first
        while at <= each.last and self.next is None:
            if self._pieces >= MAX_PIECES:
                self._end(found, at)
                return
            due = self._due(found, at, each.last)
            for part, due_ms in _waiting(at, due):
                self._put(found, part, due_ms)
            at = due.next_offset

    def _due(self, found: Unfinished, first: int, last: int) -> DueRanges:
        """Due times of a piece of the log; none of what the store does not give."""
        behind_store = DueRanges([], min(last + 1, found.log.snapshot.local_start_offset))
        if self.fault is not None and first < behind_store.next_offset:
            return behind_store
        self._pieces += 1
        due = due_ranges(found.log, first, last, self.terms)
        if due.fault is None or not self._is_of_the_store(found, first, due.fault):
            return due
        return behind_store

    def _times(self, found: Unfinished, each: ListedRange) -> OffsetTimes | None:
        """Both times of the first record; of those that are finished nobody asks any more."""
        if each.state in FINISHED:
            return None
        try:
            return found.log.search.times_at(each.first, may_ask=self.fault is None)
        except NotInMemory:
            return None
        except StorageError as fault:
            self._is_of_the_store(found, each.first, fault)
            return None

    def _is_of_the_store(self, found: Unfinished, offset: int, fault: StorageError) -> bool:
        """Notes a fault of the store; one object that is damaged is no such fault."""
        is_local = offset >= found.log.snapshot.local_start_offset
        if is_local or isinstance(fault, CorruptLog):
            return False
        self.fault = str(fault)
        return True

    def _put(self, found: Unfinished, each: ListedRange, due_ms: int | None) -> None:
        if self.next is not None:
            return
        if len(self.ranges) >= self.limit:
            self._end(found, each.first)
        else:
            self.ranges.append(_range(found, each, due_ms, self._times(found, each)))

    def _end(self, found: Unfinished, offset: int) -> None:
        self.next = Cursor(found.log.topic, found.log.partition, offset)


def _waiting(first: int, due: DueRanges) -> Iterator[tuple[ListedRange, int | None]]:
    """Parts of a range that waits, each with its due time: None where it is only short of room."""
    at = first
    for each in due.ranges:
        if at < each.first:
            yield ListedRange(at, each.first - 1, WAITING, 0), None
        yield ListedRange(each.first, each.last, WAITING, 0), each.at_ms
        at = each.last + 1
    if at < due.next_offset:
        yield ListedRange(at, due.next_offset - 1, WAITING, 0), None


def _terms(services: ShareRecordServices, group: str) -> DelayTerms:
    settings = services.config.group_config(group)
    return DelayTerms(
        settings.horolog_share_delay,
        settings.horolog_share_delay_ms,
        settings.horolog_share_delay_max_ms,
    )


def _records(services: ShareRecordServices, asked: Asked) -> object:
    after: Cursor = asked.fields["after"]
    topic, index = asked.fields["topic"], asked.fields["partition"]
    bound = ShareGroupServices(
        services.share_reads, services.share_states, services.topics, services.clock
    )
    page = _Page(services, asked)
    for each in partitions_of(bound, asked):
        place = each.log.topic, each.log.partition
        if place < after[:2] or topic not in {None, place[0]} or index not in {None, place[1]}:
            continue
        page.add(each, after.offset if place == after[:2] else 0)
        if page.next is not None:
            break
    return {
        "group": asked.path["group"],
        "now": instant(services.clock.now_ms()),
        "records": page.ranges,
        "next": None if page.next is None else ":".join(map(str, page.next)),
        "fault": page.fault,
    }


def _range(
    found: Unfinished, each: ListedRange, due_ms: int | None, times: OffsetTimes | None
) -> dict[str, object]:
    return {
        "topic": found.log.topic,
        "partition": found.log.partition,
        "first": each.first,
        "last": each.last,
        "state": each.state,
        "deliveries": each.deliveries,
        "member": each.member,
        "since": instant_or_none(each.since_ms),
        "until": instant_or_none(each.until_ms),
        "due": instant_or_none(due_ms),
        "record_time": None if times is None else instant_or_none(times.record_ms),
        "arrival": None if times is None else instant_or_none(times.arrival_ms),
    }


def _cursor(text: str, _: int) -> Cursor:
    topic, mark, numbers = text.partition(":")
    partition, second, offset = numbers.partition(":")
    if not (mark and second):
        raise ValueError(f"{text!r} is not TOPIC:PARTITION:OFFSET, as 'next' of the page before")
    return Cursor(topic, int(partition), int(offset))


ROUTES = (
    HttpRoute(
        ShareRecordServices,
        "GET",
        "/api/share-groups/{group}/records",
        "The records of a share group from the first unfinished one of each partition on, as "
        "ranges: state, deliveries, who holds them since when and until when, when they are due, "
        "both times of the first one. A page at a time.",
        needs=SEES_GROUP,
        read=_records,
        parameters=(
            Parameter("topic", ParameterKind(lambda text, _: text), "This topic only"),
            Parameter("partition", count(0, 2**31 - 1), "Partitions of this number only"),
            Parameter(
                "after", ParameterKind(_cursor), "Go on there: 'next' of the last page", Cursor()
            ),
            Parameter("limit", count(1, MAX_RANGES), "Ranges in the answer", DEFAULT_RANGES),
        ),
    ),
)
