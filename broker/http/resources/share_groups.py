"""/api/share-groups: share groups, how far each has come, who holds which records since when.

Ages go by both clocks: the age of the oldest record that is not finished, by its own time
and by its arrival.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from broker.http.port.caller import Caller, Needs
from broker.http.port.messages import ApiError
from broker.http.port.parameters import Asked, page_of
from broker.http.port.route import HttpRoute
from broker.share.ages import Unfinished, age_of, unfinished
from broker.share.share_reads import ShareReads
from broker.share.standing import HeldRange, standing_of
from broker.share.state.coordinator import ShareCoordinator
from broker.share.states import LIMIT, REJECTED
from broker.topics.topic_catalog import TopicCatalog
from config.quantities import instant, instant_or_none
from protocol.acls import AclOperation, ResourceType
from storage.env import Clock

MAX_GROUPS = 1000
MAX_PARTITIONS = 10_000
SEES_GROUP = Needs(AclOperation.DESCRIBE, ResourceType.GROUP, "group")


class ShareGroupServices(NamedTuple):
    """The services that the answers are made with."""

    share_reads: ShareReads
    share_states: ShareCoordinator
    topics: TopicCatalog
    clock: Clock


def by_group(services: ShareGroupServices, caller: Caller) -> dict[str, list[Unfinished]]:
    """The share partitions of topics that the caller may know of."""
    found = defaultdict[str, list[Unfinished]](list)
    partitions = services.share_reads.partitions
    image = services.topics.image
    for each in unfinished(services.share_states.states, partitions, image):
        if caller.sees_topic(each.log.topic):
            found[each.group].append(each)
    return found


def _share_groups(services: ShareGroupServices, asked: Asked) -> object:
    found = by_group(services, asked.caller)
    behind = sorted(name for name in found if name > asked.fields["after"])
    names = asked.caller.seen(ResourceType.GROUP, behind)
    page = names[: asked.fields["limit"]]
    return {
        "groups": [
            {
                "group": name,
                "partitions": len(found[name]),
                "sessions": services.share_reads.sessions.count_of(name),
                "behind": sum(offsets_behind(each) for each in found[name]),
                **_oldest(services, found[name]),
            }
            for name in page
        ],
        "next": page[-1] if len(names) > len(page) else None,
    }


def _oldest(services: ShareGroupServices, found: Iterable[Unfinished]) -> dict[str, object]:
    """The largest ages of partitions, as far as they are known without the disk."""
    now_ms = services.clock.now_ms()
    ages = [age for age in (age_of(each, now_ms) for each in found) if age is not None]
    return {
        "oldest_record_seconds": max(
            (age.record for age in ages if age.record is not None), default=None
        ),
        "oldest_arrival_seconds": max((age.arrival for age in ages), default=None),
    }


def _share_group(services: ShareGroupServices, asked: Asked) -> object:
    found = partitions_of(services, asked)
    name = asked.path["group"]
    return {
        "group": name,
        "sessions": services.share_reads.sessions.count_of(name),
        "behind": sum(offsets_behind(each) for each in found),
        "partitions": [queue_state(services, each) for each in found[:MAX_PARTITIONS]],
    }


def partitions_of(services: ShareGroupServices, asked: Asked) -> list[Unfinished]:
    """The share partitions of the group in the path, in order; ApiError 404."""
    name = asked.path["group"]
    found = by_group(services, asked.caller).get(name)
    if found is None or not asked.caller.sees_group(name):
        text = f"There is no share group {name!r} that reads: see /api/share-groups"
        raise ApiError(404, "unknown_group", text)
    return sorted(found, key=lambda each: (each.log.topic, each.log.partition))


def offsets_behind(found: Unfinished) -> int:
    """Offsets from the first unfinished one on, finished ones behind it included."""
    return max(found.log.snapshot.high_watermark - found.offset, 0)


def queue_state(services: ShareGroupServices, found: Unfinished) -> dict[str, object]:
    """Progress of a group in one partition. Blocks."""
    log = found.log
    age = age_of(found, services.clock.now_ms(), may_wait=True)
    place = found.group, log.topic, log.partition
    served = services.share_reads.partitions.at_place(*place)
    standing = None if served is None else standing_of(served)
    letters = services.share_reads.letters.written_of(*place)
    return {
        "topic": log.topic,
        "partition": log.partition,
        "start": found.offset,
        "high_watermark": log.snapshot.high_watermark,
        "oldest_record_seconds": None if age is None else age.record,
        "oldest_record_is_exact": age is not None and age.is_exact,
        "oldest_arrival_seconds": None if age is None else age.arrival,
        "in_memory": standing is not None,
        "end": None if standing is None else standing.end,
        "records": None if standing is None else standing.counts,
        "waiting": None if standing is None else standing.waiting,
        "next_due": None if standing is None else instant_or_none(standing.next_look_ms),
        "letters": {reason: letters[reason] for reason in (REJECTED, LIMIT)},
        "held": [] if standing is None else [_held(each) for each in standing.held],
    }


def _held(held: HeldRange) -> dict[str, object]:
    return {
        "first": held.first,
        "last": held.last,
        "deliveries": held.deliveries,
        "member": held.member,
        "since": instant(held.since_ms),
        "until": instant(held.until_ms),
    }


ROUTES = (
    HttpRoute(
        ShareGroupServices,
        "GET",
        "/api/share-groups",
        "The share groups that read, or have read, in the order of their names, a page at a time.",
        needs=Needs(AclOperation.DESCRIBE, ResourceType.GROUP),
        read=_share_groups,
        parameters=page_of("Groups", MAX_GROUPS),
    ),
    HttpRoute(
        ShareGroupServices,
        "GET",
        "/api/share-groups/{group}",
        "One share group: how far it has come in each partition, how old its oldest unfinished "
        "record is by both clocks, what waits for its time, which member holds what since when, "
        "its dead letters by reason.",
        needs=SEES_GROUP,
        read=_share_group,
    ),
)
