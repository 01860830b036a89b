"""/api/timeline/queues: where share groups stand, the oldest unfinished record first.

Of many share partitions only those that are furthest behind in records are looked at; ages come
from memory where they can, and what the disk would tell is read for the partitions shown alone.
"""

from heapq import nlargest
from math import inf
from time import sleep

from broker.http.port.caller import Needs
from broker.http.port.parameters import Asked, Parameter, ParameterKind, count
from broker.http.port.route import HttpRoute
from broker.http.resources.share_groups import (
    ShareGroupServices,
    by_group,
    offsets_behind,
    queue_state,
)
from broker.http.resources.topics import find_topic
from broker.share.ages import Unfinished, age_of
from config.quantities import instant
from protocol.acls import AclOperation, ResourceType

MOST_LOOKED, MOST_SHOWN, DEFAULT_SHOWN = 1000, 200, 50
AT_A_TIME, TURN_SECONDS = 50, 0.001


def _queues(services: ShareGroupServices, asked: Asked) -> object:
    topic = asked.fields["topic"]
    if topic is not None:
        find_topic(services.topics, topic, asked.caller)
    found = by_group(services, asked.caller)
    known = asked.caller.seen(ResourceType.GROUP, found)
    parts = [
        each for name in known for each in found[name] if topic is None or each.log.topic == topic
    ]
    now_ms = services.clock.now_ms()
    shown = _oldest(parts, now_ms)[: asked.fields["limit"]]
    return {
        "now": instant(now_ms),
        "queues": [_entry(services, each) for each in shown],
        "queues_in_all": len(parts),
    }


def _entry(services: ShareGroupServices, found: Unfinished) -> dict[str, object]:
    state = queue_state(services, found)
    del state["held"]
    return {"group": found.group, "behind": offsets_behind(found), **state}


def _oldest(parts: list[Unfinished], now_ms: int) -> list[Unfinished]:
    """By age, unknown ones first, since only what is not in memory is unknown."""
    looked = nlargest(MOST_LOOKED, parts, key=offsets_behind)
    ages: dict[int, float] = {}
    for number, each in enumerate(looked):
        if number % AT_A_TIME == AT_A_TIME - 1:
            sleep(TURN_SECONDS)  # now it is the event loop's turn
        age = age_of(each, now_ms)
        ages[number] = inf if age is None else age.arrival
    return [looked[number] for number in sorted(ages, key=ages.__getitem__, reverse=True)]


ROUTES = (
    HttpRoute(
        ShareGroupServices,
        "GET",
        "/api/timeline/queues",
        "Share groups by partition, the oldest unfinished record first: where each stands, ages by "
        "both clocks, what is due next, dead letters by reason.",
        needs=Needs(AclOperation.DESCRIBE, ResourceType.GROUP),
        read=_queues,
        parameters=(
            Parameter("topic", ParameterKind(lambda text, _: text), "This topic only"),
            Parameter("limit", count(1, MOST_SHOWN), "Partitions in the answer", DEFAULT_SHOWN),
        ),
    ),
)
