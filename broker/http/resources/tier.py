"""/api/tier: which segments are in the object store, what waits to be copied, and for what."""

from typing import TYPE_CHECKING, NamedTuple

from broker.http.port.parameters import Asked
from broker.http.port.route import HttpRoute
from broker.http.resources.partition_pages import CHOICE, cursor_behind, logs_of, page_of
from broker.http.resources.topics import SEES_TOPICS
from broker.tier.standing import TierStanding
from broker.tier.status import TierPlace, TierShare, partition_tier
from broker.tier.tier import Tier
from broker.topics.topic_catalog import TopicCatalog
from config.quantities import instant
from storage.directory.log_manager import LogManager
from storage.env import Clock

if TYPE_CHECKING:
    from storage.log.log import Log


class TierServices(NamedTuple):
    """The services that the answers are made with."""

    tier: Tier | None
    tier_standing: TierStanding | None
    topics: TopicCatalog
    logs: LogManager
    clock: Clock


def _tier(services: TierServices, asked: Asked) -> object:
    logs = logs_of(services.topics, asked)
    tier, standing = services.tier, services.tier_standing
    if tier is None or standing is None:
        return {"is_on": False, "partitions": [], "next": None}
    logs = [log for log in logs if _is_tiered(services.topics, log)]
    place = TierPlace(tier, standing, services.logs)
    page = [_partition(services, place, log) for log in page_of(logs, asked)]
    return {
        "is_on": True,
        "now": instant(services.clock.now_ms()),
        "refused": standing.refused or None,
        "unreachable": tier.tally.unreachable_because or None,
        "orphan_objects": tier.tally.orphans.objects,
        "orphan_bytes": tier.tally.orphans.size_bytes,
        "partitions": page,
        "next": cursor_behind(page, logs),
    }


def _is_tiered(topics: TopicCatalog, log: "Log") -> bool:
    """True when it is copied, or something of it is in the store."""
    is_state = log.topic in topics.internal_topics
    return is_state or log.config.remote_storage_enable or bool(log.tiers.uploaded)


def _partition(services: TierServices, place: TierPlace, log: "Log") -> dict[str, object]:
    is_state, now_ms = log.topic in services.topics.internal_topics, services.clock.now_ms()
    found = partition_tier(place, log, is_state=is_state, now_ms=now_ms)
    snapshot, blocker = log.snapshot, found.blocker
    return {
        "topic": log.topic,
        "partition": log.partition,
        "log_start_offset": snapshot.log_start_offset,
        "local_start_offset": snapshot.local_start_offset,
        "copied_end_offset": found.copied_end,
        "log_end_offset": snapshot.log_end_offset,
        "store": _share(found.in_store),
        "both": _share(found.in_both),
        "local": _share(found.local),
        "waiting": {**_share(found.waiting), "oldest_ms": found.waiting_ms},
        "blocked_by": None if blocker is None else blocker.word,
        "blocked_because": None if blocker is None else blocker.because,
        "last_error": place.tier.tally.failing.get((log.topic, log.partition)),
    }


def _share(share: TierShare) -> dict[str, object]:
    return {"segments": share.segments, "size_bytes": share.size_bytes}


ROUTES = (
    HttpRoute(
        TierServices,
        "GET",
        "/api/tier",
        "Partitions with a part in the object store: segments and bytes there, here and in both, "
        "what waits to be copied, and what blocks that.",
        needs=SEES_TOPICS,
        read=_tier,
        parameters=CHOICE,
    ),
)
