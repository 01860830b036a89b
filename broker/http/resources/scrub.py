"""/api/scrub: how far the check for rot has come, and what it found in which segment."""

from typing import TYPE_CHECKING

from broker.http.port.parameters import Asked
from broker.http.port.route import HttpRoute
from config.quantities import instant, instant_or_none

if TYPE_CHECKING:
    from broker.http.port.services import HttpServices
    from broker.tasks.scrubber import Rot
    from storage.log.log import Log


def _scrub(broker: "HttpServices", _: Asked) -> object:
    tally = broker.scrubber.tally
    settings = broker.config.broker_config
    return {
        "pass_began": instant_or_none(tally.began_ms),
        "last_pass_ended": instant_or_none(tally.ended_ms),
        "reading": tally.log or None,
        "bytes_read": tally.bytes_read,
        "segments_read": tally.segments_read,
        "unreadable_segments": tally.unreadable_segments,
        "interval_ms": settings.horolog_scrub_interval_ms,
        "max_bytes_per_second": settings.horolog_scrub_max_bytes_per_second,
        "faulty": [
            _told(log, each) for log, rot in broker.scrubber.found().items() for each in rot
        ],
    }


def _told(log: "Log", rot: "Rot") -> dict[str, object]:
    return {
        "topic": log.topic,
        "partition": log.partition,
        "base_offset": rot.segment.base_offset,
        "found": instant(rot.found_ms),
        "findings": [each._asdict() for each in rot.findings],
    }


ROUTES = (
    HttpRoute(
        "GET",
        "/api/scrub",
        "The check of closed segments for rot: how far it is, and what is wrong where.",
        read=_scrub,
    ),
)
