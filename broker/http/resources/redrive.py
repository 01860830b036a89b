"""/api/share-groups/{group}/redrive: dead letters that are not sent back yet, and sending them.

Letters go back to the topics, the partitions and with the times of their records, as many as a call
may; what has gone is remembered, so the next call goes on behind it.
"""

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from broker.groups.coordinator import GroupCoordinator
from broker.groups.group_type import GroupType
from broker.groups.redrive.progress import PREFIX, Position
from broker.groups.redrive.redrive import Redrive
from broker.groups.redrive.redrive_call import RedriveAsked, RedriveOutcome
from broker.http.port.caller import Caller, Needs, Role
from broker.http.port.messages import ApiError
from broker.http.port.parameters import Asked, Parameter, ParameterKind, count
from broker.http.port.route import HttpRoute
from broker.http.resources.groups import SEES_GROUP, find_group
from broker.http.resources.topics import find_topic
from broker.partitions.leadership import NOBODY, Leadership
from broker.partitions.partition import Partition
from broker.partitions.partition_services import Nobody
from broker.share.letters.dead_letters import ENABLED
from broker.topics.metadata_image import TopicImage
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_LETTERS, DEFAULT_LETTERS = 100_000, 10_000
MAX_BYTES, DEFAULT_BYTES = 256 * 1024 * 1024, 64 * 1024 * 1024
MAX_SECONDS, DEFAULT_SECONDS = 30, 10
CLIENT_ID = "horolog-redrive"
NOT_BEGUN = Position(0)


class RedriveServices(NamedTuple):
    """The services that the answers are made with."""

    groups: GroupCoordinator
    topics: TopicCatalog
    config: ConfigStore
    redrive: Redrive


async def _preview(services: RedriveServices, asked: Asked) -> object:
    name, letters = asked.path["group"], _letters(services, asked)
    standing = await _standing(services, name, letters)
    if standing["left"] is None:
        raise ApiError(503, "not_leader", "The leader of some letters does not answer: ask again")
    return {**standing, "executed": False}


async def _send_back(services: RedriveServices, asked: Asked) -> object:
    name, letters = asked.path["group"], _letters(services, asked)
    call = RedriveAsked(
        name,
        letters,
        Nobody(CLIENT_ID, principal=asked.caller.principal),
        lambda topic: asked.caller.may(AclOperation.WRITE, ResourceType.TOPIC, topic),
        asked.fields["limit"],
        asked.fields["bytes"],
        asked.fields["seconds"],
    )
    try:
        outcome = await services.redrive.send_back(call)
    except KafkaError as error:
        raise await _refusal(error, services.groups, PREFIX + name) from error
    _check_rights(outcome)
    return {**await _standing(services, name, letters), "executed": True, **_result(outcome)}


async def _refusal(
    error: KafkaError, groups: GroupCoordinator, remembers: str
) -> ApiError | KafkaError:
    """As people are to hear it."""
    if error.code == ErrorCode.REBALANCE_IN_PROGRESS:
        return ApiError(409, "redrive_under_way", f"{error.message}: ask again later")
    if error.code == ErrorCode.NOT_COORDINATOR:
        await groups.topic.make()  # where no client has asked for a coordinator, nobody ever is one
        return _other_node(groups.topic.leader_elsewhere(remembers), remembers)
    return error


def _other_node(elsewhere: Leadership | None, remembers: str) -> ApiError:
    """For the group in which progress is remembered; by now this node may coordinate it itself."""
    if elsewhere is None or elsewhere.node_id == NOBODY:
        text = f"Nobody coordinates the group {remembers}, which remembers it, yet: ask again"
        return ApiError(503, "no_coordinator", text)
    text = f"Node {elsewhere.node_id} coordinates the group {remembers}, which remembers it"
    return ApiError(409, "other_node", f"{text}: ask that one")


def _check_rights(outcome: RedriveOutcome) -> None:
    """A call that may do nothing of what it asked for is a refused one."""
    stopped = outcome.stopped
    if stopped is None or outcome.letters:
        return
    if stopped.error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        raise ApiError(403, "forbidden", f"{stopped.error.message}: see kafka-acls")


def _letters(services: RedriveServices, asked: Asked) -> TopicImage:
    """The topic of letters that is meant; ApiError."""
    group = asked.path["group"]
    named = services.config.group_config(group).errors_deadletterqueue_topic_name
    _check_group(services, asked.caller, group, has_letters=bool(named))
    name = asked.fields["letters"] or named
    if not name:
        text = f"Group {group!r} has no errors.deadletterqueue.topic.name: name letters="
        raise ApiError(409, "no_letters", text)
    found = find_topic(services.topics, name, asked.caller)
    _check_may_read(asked.caller, name)
    prefix = services.config.broker_config.errors_deadletterqueue_topic_name_prefix
    allows = found.partitions[0].log.config.errors_deadletterqueue_group_enable
    if not (allows and name.startswith(prefix)):
        text = f"Topic {name!r} is none of letters: {prefix} before its name, and {ENABLED}=true"
        raise ApiError(409, "no_letters", text)
    return found


def _check_group(
    services: RedriveServices, caller: Caller, name: str, *, has_letters: bool
) -> None:
    """ApiError for a group that nothing is known of, and for one of another type. One with letters
    may be gone, or be coordinated by another node of a fleet.
    """
    if has_letters and caller.sees_group(name) and name not in services.groups.groups:
        return
    group = find_group(services.groups, name, caller)
    if group.group_type is not GroupType.SHARE:
        text = f"Group {name!r} is no share group: others give up no records"
        raise ApiError(409, "no_share_group", text)


def _check_may_read(caller: Caller, topic: str) -> None:
    if not caller.may(AclOperation.READ, ResourceType.TOPIC, topic):
        text = f"{caller.principal} may not READ topic {topic!r}: see kafka-acls"
        raise ApiError(403, "forbidden", text)


async def _standing(
    services: RedriveServices, group: str, letters: TopicImage
) -> "Mapping[str, object]":
    progress = services.redrive.progress(group, letters.name)
    try:
        progress.check()
    except KafkaError as error:
        raise await _refusal(error, services.groups, progress.name) from error
    positions = progress.positions()
    asked = (
        _of_partition(services, each, positions.get(each.index, NOT_BEGUN))
        for each in letters.partitions
        if isinstance(each, Partition)
    )
    partitions = await asyncio.gather(*asked)
    left = [each["left"] for each in partitions]
    return {
        "group": group,
        "letters": letters.name,
        "remembered_in": PREFIX + group,
        "left": None if None in left else sum(each for each in left if each is not None),
        "partitions": partitions,
    }


async def _of_partition(
    services: RedriveServices, partition: Partition, at: Position
) -> "Mapping[str, int | bool | None]":
    """Numbers are null while the leader does not answer."""
    start, end = at.offset, None
    try:
        first, end = await services.redrive.bounds(partition)
        start = max(start, first)
    except KafkaError:
        pass
    return {
        "partition": partition.index,
        "offset": start,
        "end": end,
        "left": None if end is None else max(end - start, 0),
        "is_led_here": partition.leader_elsewhere is None,
        "is_under_way": at.intent is not None,
    }


def _result(outcome: RedriveOutcome) -> "Mapping[str, object]":
    stopped = outcome.stopped
    return {
        "sent": outcome.letters,
        "sent_bytes": outcome.size_bytes,
        "passed_over": dict(outcome.passed_over),
        "stopped": None
        if stopped is None
        else {
            "partition": stopped.partition,
            "offset": stopped.offset,
            "error": stopped.error.code.name,
            "message": stopped.error.message,
        },
    }


_LETTERS = Parameter(
    "letters",
    ParameterKind(lambda text, _: text),
    "Topic of the letters, if it is not errors.deadletterqueue.topic.name of the group",
)

ROUTES = (
    HttpRoute(
        RedriveServices,
        "GET",
        "/api/share-groups/{group}/redrive",
        "Records in the topic of a share group's dead letters that no redrive has looked at; "
        "nothing changes.",
        needs=SEES_GROUP,
        act=_preview,
        parameters=(_LETTERS,),
    ),
    HttpRoute(
        RedriveServices,
        "POST",
        "/api/share-groups/{group}/redrive",
        "Send dead letters of a share group back to where their records were, as many as the "
        "bounds allow for. Needs READ of the letters, and WRITE of the topics, too.",
        needs=Needs(AclOperation.READ, ResourceType.GROUP, "group", Role.OPERATE),
        act=_send_back,
        parameters=(
            _LETTERS,
            Parameter("limit", count(1, MAX_LETTERS), "Letters in this call", DEFAULT_LETTERS),
            Parameter("bytes", count(1, MAX_BYTES), "Bytes in this call", DEFAULT_BYTES),
            Parameter("seconds", count(1, MAX_SECONDS), "Time for this call", DEFAULT_SECONDS),
        ),
    ),
)
