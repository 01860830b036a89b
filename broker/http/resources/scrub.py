"""/api/scrub: how far the check for rot has come, and what it found in which segment."""

from typing import TYPE_CHECKING, NamedTuple

from broker.http.port.caller import Needs
from broker.http.port.parameters import Asked
from broker.http.port.route import HttpRoute
from broker.tasks.scrubber import Scrubber
from config.quantities import instant, instant_or_none
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType

if TYPE_CHECKING:
    from broker.tasks.scrubber import Rot
    from storage.log.log import Log


class ScrubServices(NamedTuple):
    """The services that the answers are made with."""

    scrubber: Scrubber
    config: ConfigStore


def _scrub(services: ScrubServices, asked: Asked) -> object:
    tally, caller = services.scrubber.tally, asked.caller
    settings = services.config.broker_config
    return {
        "pass_began": instant_or_none(tally.began_ms),
        "last_pass_ended": instant_or_none(tally.ended_ms),
        "reading": tally.log if tally.log and caller.sees_topic(_topic_of(tally.log)) else None,
        "bytes_read": tally.bytes_read,
        "segments_read": tally.segments_read,
        "unreadable_segments": tally.unreadable_segments,
        "interval_ms": settings.horolog_scrub_interval_ms,
        "max_bytes_per_second": settings.horolog_scrub_max_bytes_per_second,
        "faulty": [
            _finding(log, each)
            for log, rot in services.scrubber.found().items()
            if caller.sees_topic(log.topic)
            for each in rot
        ],
    }


def _topic_of(log: str) -> str:
    """Of a log's name, `topic-0`."""
    return log.rpartition("-")[0]


def _finding(log: "Log", rot: "Rot") -> dict[str, object]:
    return {
        "topic": log.topic,
        "partition": log.partition,
        "base_offset": rot.segment.base_offset,
        "found": instant(rot.found_ms),
        "findings": [each._asdict() for each in rot.findings],
    }


ROUTES = (
    HttpRoute(
        ScrubServices,
        "GET",
        "/api/scrub",
        "The check of closed segments for rot: how far it is, and what is wrong where.",
        needs=Needs(AclOperation.DESCRIBE, ResourceType.CLUSTER),
        read=_scrub,
    ),
)
