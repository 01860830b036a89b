"""/api/topics/{topic}/time: offsets by time, the records between two times, and arrival delays.

By any of the three clocks of `storage.search.search_clock`, whatever the topic's own search clock
is. The answers hold for records that consumers see.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from broker.http.port.messages import ApiError
from broker.http.port.parameters import INSTANT, Asked, Parameter, count, word
from broker.http.port.route import HttpRoute
from broker.http.resources.topics import SEES_TOPIC, find_partitions, find_topic
from broker.topics.topic_catalog import TopicCatalog
from config.quantities import instant, instant_or_none
from storage.search.search_clock import SearchClock

if TYPE_CHECKING:
    from storage.log.log import Log

MAX_PARTITIONS = 256


class TimeQueryServices(NamedTuple):
    """The services that the answers are made with."""

    topics: TopicCatalog


def _lookup(services: TimeQueryServices, asked: Asked) -> object:
    timestamp, clock = asked.fields["timestamp"], SearchClock(asked.fields["clock"])

    def look(log: "Log") -> dict[str, object]:
        found = log.search.first_at_or_after(timestamp, clock=clock)
        if found is None:
            return {"found": None}
        times = log.search.times_at(found.offset)
        return {
            "found": {
                "offset": found.offset,
                "time": instant(found.timestamp),
                "leader_epoch": found.leader_epoch,
                "record_time": None if times is None else instant_or_none(times.record_ms),
                "arrival_time": None if times is None else instant_or_none(times.arrival_ms),
                "arrival_is_estimated": times is not None and times.is_estimated,
            }
        }

    asked_for = {"timestamp": instant(timestamp), "clock": str(clock)}
    return _each(services, asked, asked_for, look)


def _range(services: TimeQueryServices, asked: Asked) -> object:
    from_ms, to_ms = asked.fields["from"], asked.fields["to"]
    clock = SearchClock(asked.fields["clock"])
    if from_ms > to_ms:
        raise ApiError(400, "bad_parameter", "from is after to: a range is from <= time < to")

    def look(log: "Log") -> dict[str, object]:
        found = log.search.range_between(from_ms, to_ms, clock=clock)
        return {
            "first_offset": found.first_offset,
            "last_offset": found.last_offset,
            "records": found.records,
            "records_at_most": found.records_at_most,
            "is_exact": found.is_exact,
            "is_empty": found.is_empty,
            "doubtful": found.undecided,
            "estimated": found.estimated,
            "zones_counted": found.zones_counted,
            "zones_scanned": found.zones_scanned,
        }

    asked_for = {"from": instant(from_ms), "to": instant(to_ms), "clock": str(clock)}
    return _each(services, asked, asked_for, look)


def _skew(services: TimeQueryServices, asked: Asked) -> object:
    def look(log: "Log") -> dict[str, object]:
        found = log.search.skew()
        return {
            "records": found.records,
            "unknown_records": found.unknown_records,
            "least_ms": found.least_ms,
            "most_ms": found.most_ms,
            "earliest_zone_offset": found.earliest_zone_offset,
            "latest_zone_offset": found.latest_zone_offset,
            "buckets": [each._asdict() for each in found.buckets],
        }

    return _each(services, asked, {}, look)


def _each(
    services: TimeQueryServices,
    asked: Asked,
    asked_for: Mapping[str, object],
    look: "Callable[[Log], dict[str, object]]",
) -> dict[str, object]:
    topic = find_topic(services.topics, asked.path["topic"], asked.caller)
    partitions = find_partitions(topic, asked.fields["partition"])
    if len(partitions) > MAX_PARTITIONS:
        raise ApiError(
            400,
            "too_many_partitions",
            f"{topic.name} has {len(partitions)} partitions: ask for one with partition=",
        )
    return {
        "topic": topic.name,
        **asked_for,
        "partitions": [
            {
                "partition": each.index,
                "log_start_offset": each.log.snapshot.log_start_offset,
                "high_watermark": each.log.snapshot.high_watermark,
                **look(each.log),
            }
            for each in partitions
        ],
    }


_PARTITION = Parameter("partition", count(0, 2**31 - 1), "This partition only")
_CLOCK = Parameter(
    "clock",
    word(*(str(each) for each in SearchClock)),
    "record: the time that a record claims; arrival: when it came; earlier: the earlier of both",
    str(SearchClock.RECORD),
)
ROUTES = (
    HttpRoute(
        TimeQueryServices,
        "GET",
        "/api/topics/{topic}/time/lookup",
        "The first offset at or after a time, by any clock, with both times of its record.",
        needs=SEES_TOPIC,
        read=_lookup,
        parameters=(
            Parameter("timestamp", INSTANT, "The time", required=True),
            _CLOCK,
            _PARTITION,
        ),
    ),
    HttpRoute(
        TimeQueryServices,
        "GET",
        "/api/topics/{topic}/time/range",
        "The records from one time to before another: offsets, their number, or the proof that "
        "there are none.",
        needs=SEES_TOPIC,
        read=_range,
        parameters=(
            Parameter("from", INSTANT, "The first time", required=True),
            Parameter("to", INSTANT, "The first time that is no more in it", required=True),
            _CLOCK,
            _PARTITION,
        ),
    ),
    HttpRoute(
        TimeQueryServices,
        "GET",
        "/api/topics/{topic}/time/skew",
        "Delays of the records: arrival minus record time, in buckets, and the extremes.",
        needs=SEES_TOPIC,
        read=_skew,
        parameters=(_PARTITION,),
    ),
)
