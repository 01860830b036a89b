"""/api/groups: consumer groups, their members and their lag.

Lag is given in records, and in time by both clocks: record time and arrival.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from broker.groups.classic.group import Group
from broker.groups.classic.subscription import CONSUMER
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.coordinator import GroupCoordinator
from broker.groups.lag import Standing, standings_of
from broker.groups.share.group import ShareGroup
from broker.groups.share.member import ShareMember
from broker.groups.streams.assignor import STICKY
from broker.groups.streams.group import StreamsGroup
from broker.groups.streams.member import StreamsMember
from broker.http.port.caller import Caller, Needs
from broker.http.port.messages import ApiError
from broker.http.port.parameters import Asked, page_of
from broker.http.port.route import HttpRoute
from broker.topics.topic_catalog import TopicCatalog
from config.quantities import instant, instant_or_none
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType

MAX_GROUPS = 1000
MAX_OFFSETS = 10_000
SEES_GROUP = Needs(AclOperation.DESCRIBE, ResourceType.GROUP, "group")


class GroupServices(NamedTuple):
    """The services that the answers are made with."""

    groups: GroupCoordinator
    topics: TopicCatalog
    config: ConfigStore


def find_group(groups: GroupCoordinator, name: str, caller: Caller) -> Group:
    """The group; ApiError 404 when there is none, or none that the caller may know of."""
    is_seen, group = caller.sees_group(name), groups.groups.get(name)
    if group is None or not is_seen:
        raise ApiError(404, "unknown_group", f"There is no group {name!r}: see /api/groups")
    return group


def _groups(services: GroupServices, asked: Asked) -> object:
    found = dict(services.groups.groups)
    behind = sorted(name for name in found if name > asked.fields["after"])
    names = asked.caller.seen(ResourceType.GROUP, behind)
    page = names[: asked.fields["limit"]]
    return {
        "groups": [_summary(services, found[name], asked.caller) for name in page],
        "loading": services.groups.loading.is_under_way,
        "next": page[-1] if len(names) > len(page) else None,
    }


def _summary(services: GroupServices, group: Group, caller: Caller) -> dict[str, object]:
    behind = [each.records for each in _standings(services, group, caller)]
    return {
        "group": group.group_id,
        "state": group.state_name,
        "type": group.group_type,
        "since": instant_or_none(group.since_ms),
        **_protocol(services, group),
        "members": group.member_count,
        "offsets": sum(caller.sees_topic(topic) for topic, _ in list(group.offsets)),
        "lag_records": sum(behind),
    }


def _group(services: GroupServices, asked: Asked) -> object:
    group = find_group(services.groups, asked.path["group"], asked.caller)
    found = sorted(_standings(services, group, asked.caller), key=_place)
    return {
        **_summary(services, group, asked.caller),
        "member_states": _members(services, group),
        "partitions": [_standing(each) for each in found[:MAX_OFFSETS]],
    }


def _protocol(services: GroupServices, group: Group) -> dict[str, object]:
    """The group's type and protocol; the generation of a group that the broker assigns is its
    epoch.
    """
    consumer, settings = group.modern, services.config.broker_config
    if isinstance(consumer, ShareGroup):
        return {
            "protocol_type": consumer.group_type,
            "protocol": settings.group_share_assignors,
            "generation": consumer.epoch,
        }
    if isinstance(consumer, StreamsGroup):
        return {
            "protocol_type": consumer.group_type,
            "protocol": STICKY,
            "generation": consumer.epoch,
        }
    if not isinstance(consumer, ConsumerGroup):
        return {
            "protocol_type": group.protocol_type,
            "protocol": group.protocol_name,
            "generation": group.generation,
        }
    default = settings.group_consumer_assignors.split(",")[0]
    return {
        "protocol_type": CONSUMER,
        "protocol": consumer.assignor(default),
        "generation": consumer.epoch,
    }


def _members(services: GroupServices, group: Group) -> list[dict[str, object]]:
    consumer = group.modern
    if isinstance(consumer, ShareGroup | StreamsGroup):
        return _plain_members(services, consumer)
    if not isinstance(consumer, ConsumerGroup):
        return [
            {
                "member_id": each.member_id,
                "instance_id": each.instance_id,
                "client_id": each.client_id,
                "client_host": each.client_host,
                "session_timeout_ms": each.session_timeout_ms,
                "leads": each.member_id == group.leader,
            }
            for each in list(group.members.values())
        ]
    settings = services.config.group_config(group.group_id)
    return [
        {
            "member_id": each.member_id,
            "instance_id": each.instance_id,
            "client_id": each.client_id,
            "client_host": each.client_host,
            "session_timeout_ms": settings.consumer_session_timeout_ms
            if each.classic is None
            else each.classic.session_timeout_ms,
            "leads": False,
        }
        for each in list(consumer.members.values())
    ]


def _plain_members(
    services: GroupServices, group: ShareGroup | StreamsGroup
) -> list[dict[str, object]]:
    """Of groups without static members."""
    settings = services.config.group_config(group.group_id)
    session_timeout_ms = (
        settings.share_session_timeout_ms
        if isinstance(group, ShareGroup)
        else settings.streams_session_timeout_ms
    )
    members: Iterable[ShareMember | StreamsMember] = list(group.members.values())
    return [
        {
            "member_id": each.member_id,
            "instance_id": None,
            "client_id": each.client_id,
            "client_host": each.client_host,
            "session_timeout_ms": session_timeout_ms,
            "leads": False,
        }
        for each in members
    ]


def _standings(services: GroupServices, group: Group, caller: Caller) -> Iterator[Standing]:
    """In the topics that the caller may know of."""
    for each in standings_of(group, services.topics.image):
        if caller.sees_topic(each.topic):
            yield each


def _place(standing: Standing) -> tuple[str, int]:
    return standing.topic, standing.partition


def _standing(standing: Standing) -> dict[str, object]:
    value = standing.value
    return {
        "topic": standing.topic,
        "partition": standing.partition,
        "offset": value.offset,
        "committed_at": instant(value.commit_timestamp),
        "metadata": value.metadata,
        "high_watermark": standing.end,
        **_lag(standing),
    }


def _lag(standing: Standing) -> dict[str, object]:
    """Without times where another node leads the partition."""
    lag = times = None
    if standing.log is not None:
        search = standing.log.search
        lag = search.lag_at(standing.value.offset)
        times = search.times_at(standing.value.offset) if lag.records > 0 else None
    return {
        "lag_records": standing.records if lag is None else lag.records,
        "lag_record_time_ms": None if lag is None else lag.record_ms,
        "lag_arrival_ms": None if lag is None else lag.arrival_ms,
        "next_record_time": None if times is None else instant_or_none(times.record_ms),
        "next_arrival": None if times is None else instant_or_none(times.arrival_ms),
    }


ROUTES = (
    HttpRoute(
        GroupServices,
        "GET",
        "/api/groups",
        "The groups of consumers in the order of their names, a page at a time.",
        needs=Needs(AclOperation.DESCRIBE, ResourceType.GROUP),
        read=_groups,
        parameters=page_of("Groups", MAX_GROUPS),
    ),
    HttpRoute(
        GroupServices,
        "GET",
        "/api/groups/{group}",
        "One group: its members, and how far it is behind in each partition, in records and in "
        "time by both clocks.",
        needs=SEES_GROUP,
        read=_group,
    ),
)
