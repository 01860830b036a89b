"""/api/timeline/lookup: offset and segment for a timestamp, per partition.

As `/api/topics/{topic}/time/lookup`, but over topics and with an end: an answer that would take
longer than a second is cut there, and `next` goes on.
"""

from typing import TYPE_CHECKING, NamedTuple

from broker.http.port.parameters import INSTANT, Asked, Parameter, word
from broker.http.port.route import HttpRoute
from broker.http.resources.partition_pages import CHOICE, cursor_behind, logs_of, page_of
from broker.http.resources.topics import SEES_TOPICS
from broker.runtime.probes import BrokerProbes
from broker.topics.topic_catalog import TopicCatalog
from config.quantities import instant, instant_or_none
from storage.errors import StorageError
from storage.search.search_clock import SearchClock
from storage.segment.segments import index_of

if TYPE_CHECKING:
    from storage.log.log import Log

LOOKING_SECONDS = 1.0


class LookupServices(NamedTuple):
    """The services that the answers are made with."""

    topics: TopicCatalog
    probes: BrokerProbes


def _lookup(services: LookupServices, asked: Asked) -> object:
    timestamp, clock = asked.fields["timestamp"], SearchClock(asked.fields["clock"])
    logs = logs_of(services.topics, asked)
    until = services.probes.monotonic() + LOOKING_SECONDS
    page: list[dict[str, object]] = []
    for log in page_of(logs, asked):
        if page and services.probes.monotonic() > until:
            break
        page.append(_landing(log, timestamp, clock))
    return {
        "timestamp": instant(timestamp),
        "clock": str(clock),
        "partitions": page,
        "next": cursor_behind(page, logs),
    }


def _landing(log: "Log", timestamp: int, clock: SearchClock) -> dict[str, object]:
    landing: dict[str, object] = {"topic": log.topic, "partition": log.partition}
    try:
        found = log.search.first_at_or_after(timestamp, clock=clock)
        times = None if found is None else log.search.times_at(found.offset)
    except StorageError as error:
        return {**landing, "found": None, "fault": str(error)}
    if found is None:
        return {**landing, "found": None, "fault": None}
    segments = log.snapshot.segments
    return {
        **landing,
        "found": {
            "offset": found.offset,
            "segment": segments[index_of(segments, found.offset)].base_offset,
            "time": instant(found.timestamp),
            "record_time": None if times is None else instant_or_none(times.record_ms),
            "arrival_time": None if times is None else instant_or_none(times.arrival_ms),
        },
        "fault": None,
    }


ROUTES = (
    HttpRoute(
        LookupServices,
        "GET",
        "/api/timeline/lookup",
        "The first offset at or after a time in each partition, by any clock, and its segment.",
        needs=SEES_TOPICS,
        read=_lookup,
        parameters=(
            Parameter("timestamp", INSTANT, "The time", required=True),
            Parameter(
                "clock",
                word(*(str(each) for each in SearchClock)),
                "record: the time that a record claims; arrival: when it came; earlier: the "
                "earlier of both",
                str(SearchClock.RECORD),
            ),
            *CHOICE,
        ),
    ),
)
