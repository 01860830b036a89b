"""/api/groups/{group}/reset: where a group would go on if it were set to a time, and doing it.

The new offset of a partition is that of the first record at or after the time, by the clock that
is asked for; its end when there is none. Only a group without members can be set, and in a fleet
only in partitions that this node leads: what it has of others may be old.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from broker.groups.classic.group import Group
from broker.groups.coordinator import GroupCoordinator
from broker.groups.group_type import GroupType
from broker.groups.records.classic import NONE, OffsetCommitValue
from broker.http.port.caller import Caller, Needs, Role
from broker.http.port.messages import ApiError
from broker.http.port.parameters import INSTANT, Asked, Parameter, ParameterKind, word
from broker.http.port.route import HttpRoute
from broker.http.resources.groups import SEES_GROUP, find_group
from broker.http.resources.topics import find_topic
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import wait_for
from broker.runtime.unpacking import RequestBudget, too_much_of_a_request
from broker.topics.metadata_image import TopicImage
from broker.topics.topic_catalog import TopicCatalog
from config.quantities import instant, instant_or_none
from protocol.acls import AclOperation, ResourceType
from protocol.errors import ErrorCode, KafkaError
from protocol.wire import ZERO_UUID
from storage.env import Clock
from storage.search.search_clock import SearchClock
from storage.validation.unpacking import TooMuchWork

if TYPE_CHECKING:
    from uuid import UUID

    from broker.partitions.partition import Partition
    from storage.segment.log_snapshot import TimestampOffset

MAX_PARTITIONS = 10_000
UNPACKED = 1 << 40
"""Bytes and records that a search may unpack of what is in the log's directory: all there is."""


class ResetServices(NamedTuple):
    """The services that the answers are made with."""

    groups: GroupCoordinator
    topics: TopicCatalog
    clock: Clock


class ResetTarget(NamedTuple):
    """A partition that the group is set in, and where it is now; None: nowhere."""

    topic: str
    topic_id: "UUID"
    partition: int
    served: "Partition"
    before: int | None


class Step(NamedTuple):
    """Target offset of the group in a partition, and the time found there."""

    target: ResetTarget
    offset: int
    leader_epoch: int
    found_ms: int | None


def _preview(services: ResetServices, asked: Asked) -> object:
    group = _with_offsets(services, asked)
    return _outcome(group, asked, _steps(_targets(services, group, asked), asked), executed=False)


async def _reset(services: ResetServices, asked: Asked) -> object:
    group = _with_offsets(services, asked)
    _check_empty(group)
    targets = _targets(services, group, asked)
    _check_may_read(asked.caller, {each.topic for each in targets})
    steps = [await _step_on_lanes(each, asked) for each in targets]
    _check_empty(group)  # a member may have joined meanwhile
    if services.groups.groups.get(group.group_id) is not group:
        raise ApiError(404, "unknown_group", f"Group {group.group_id!r} is gone")
    now_ms = services.clock.now_ms()
    offsets = {
        (each.target.topic, each.target.partition): OffsetCommitValue(
            offset=each.offset,
            leader_epoch=each.leader_epoch,
            metadata="",
            commit_timestamp=now_ms,
            topic_id=each.target.topic_id,
        )
        for each in steps
    }
    if offsets:
        await wait_for(services.groups.commits.store(group, offsets))
    return _outcome(group, asked, steps, executed=True)


def _with_offsets(services: ResetServices, asked: Asked) -> Group:
    group = find_group(services.groups, asked.path["group"], asked.caller)
    if group.group_type is GroupType.SHARE:
        raise ApiError(
            409,
            "group_without_offsets",
            f"Group {group.group_id!r} is a share group, which commits no offsets: "
            "kafka-share-groups.sh sets where it starts",
        )
    return group


def _check_empty(group: Group) -> None:
    if not group.is_empty:
        raise ApiError(
            409,
            "group_not_empty",
            f"Group {group.group_id!r} has {group.member_count} members, which go on from where "
            "they are: stop them, then set it",
        )


def _check_may_read(caller: Caller, topics: Iterable[str]) -> None:
    """As for a commit of offsets: who sets a group reads its topics."""
    for name in sorted(topics):
        if not caller.may(AclOperation.READ, ResourceType.TOPIC, name):
            raise ApiError(
                403, "forbidden", f"{caller.principal} may not READ topic {name!r}: see kafka-acls"
            )


def _targets(services: ResetServices, group: Group, asked: Asked) -> list[ResetTarget]:
    """All partitions of the topic that is asked for, or those that the group has committed in."""
    committed = dict(group.offsets)
    topics = services.topics.image.topics
    topic = asked.fields["topic"]
    if topic is not None:
        images = [find_topic(services.topics, topic, asked.caller)]
    else:
        names = sorted({name for name, _ in committed} & topics.keys())
        images = [topics[name] for name in asked.caller.seen(ResourceType.TOPIC, names)]
    found = list(_targets_of(images, committed, every=topic is not None))
    if len(found) > MAX_PARTITIONS:
        raise ApiError(
            400, "too_many_partitions", f"{len(found)} partitions: ask topic by topic, with topic="
        )
    return found


def _targets_of(
    topics: Iterable[TopicImage],
    committed: Mapping[tuple[str, int], OffsetCommitValue],
    *,
    every: bool,
) -> Iterator[ResetTarget]:
    for topic in topics:
        for index, each in enumerate(topic.partitions):
            value = committed.get((topic.name, index))
            if value is not None and value.topic_id not in {ZERO_UUID, topic.topic_id}:
                value = None
            if every or value is not None:
                before = None if value is None else value.offset
                yield ResetTarget(topic.name, topic.topic_id, index, each, before)


def _steps(targets: list[ResetTarget], asked: Asked) -> list[Step]:
    """Blocks."""
    clock = SearchClock(asked.fields["clock"])
    return [_step(each, asked.fields["to"], clock) for each in targets]


def _check_led(target: ResetTarget) -> None:
    """ApiError 409 while another node may lead the partition."""
    try:
        target.served.check_surely_leads()
    except KafkaError as error:
        raise ApiError(
            409,
            "other_node",
            f"{error.message}, and its times are known there alone: kafka-consumer-groups "
            "--reset-offsets --to-datetime asks each leader",
        ) from error


def _step(target: ResetTarget, to_ms: int, clock: SearchClock) -> Step:
    _check_led(target)
    log = target.served.log
    end = log.snapshot.high_watermark
    return _step_to(target, end, log.search.first_at_or_after(to_ms, clock=clock))


async def _step_on_lanes(target: ResetTarget, asked: Asked) -> Step:
    """Waits for the disk, and for a tier's store as long as a search may. ApiError, KafkaError."""
    _check_led(target)
    budget = RequestBudget()
    budget.bytes_left = budget.records_left = UNPACKED
    end = target.served.log.snapshot.high_watermark
    to_ms, clock = asked.fields["to"], SearchClock(asked.fields["clock"])
    found = target.served.find_timestamp(to_ms, end, at_once=False, budget=budget, clock=clock)
    try:
        return _step_to(
            target, end, await wait_for(found) if isinstance(found, Deferred) else found
        )
    except TooMuchWork:
        raise too_much_of_a_request(ErrorCode.OFFSET_NOT_AVAILABLE) from None


def _step_to(target: ResetTarget, end: int, found: "TimestampOffset | None") -> Step:
    if found is None or found.offset >= end:
        return Step(target, end, NONE, None)
    return Step(target, found.offset, found.leader_epoch, found.timestamp)


def _outcome(group: Group, asked: Asked, steps: list[Step], *, executed: bool) -> dict[str, object]:
    return {
        "group": group.group_id,
        "state": group.state_name,
        "members": group.member_count,
        "to": instant(asked.fields["to"]),
        "clock": asked.fields["clock"],
        "executed": executed,
        "partitions": [
            {
                "topic": each.target.topic,
                "partition": each.target.partition,
                "offset": each.target.before,
                "new_offset": each.offset,
                "records": None if each.target.before is None
                else each.offset - each.target.before,
                "found_time": instant_or_none(each.found_ms),
                "high_watermark": each.target.served.log.snapshot.high_watermark,
            }
            for each in steps
        ],
    }  # fmt: skip


_PARAMETERS = (
    Parameter("to", INSTANT, "The time to go on from", required=True),
    Parameter(
        "clock",
        word(*(str(clock) for clock in SearchClock)),
        "Times that records claim, those when they arrived, or the earlier of the two",
        str(SearchClock.RECORD),
    ),
    Parameter(
        "topic",
        ParameterKind(lambda text, _: text),
        "All partitions of this topic, instead of those committed",
    ),
)

ROUTES = (
    HttpRoute(
        ResetServices,
        "GET",
        "/api/groups/{group}/reset",
        "Offsets where a group would continue if it were moved to a time; nothing changes.",
        needs=SEES_GROUP,
        read=_preview,
        parameters=_PARAMETERS,
    ),
    HttpRoute(
        ResetServices,
        "POST",
        "/api/groups/{group}/reset",
        "Move a group without members to a time: commits new offsets.",
        needs=Needs(AclOperation.READ, ResourceType.GROUP, "group", Role.OPERATE),
        act=_reset,
        parameters=_PARAMETERS,
    ),
)
