"""/api/topics/{topic}/retention/preview: what would go, before anything does (time.md 5)."""

from typing import NamedTuple

from broker.guards.clock_guard import ClockWatch
from broker.http.port.parameters import Asked, Parameter, count
from broker.http.port.route import HttpRoute
from broker.http.resources.clock import hold_state
from broker.http.resources.segments import learn_all_times
from broker.http.resources.topics import SEES_TOPIC, find_partitions, find_topic
from broker.runtime.probes import BrokerProbes
from broker.topics.retention_preview import Leaving, preview
from broker.topics.topic_catalog import TopicCatalog
from config.quantities import instant, instant_or_none
from config.store import ConfigStore
from storage.env import Clock


class PreviewServices(NamedTuple):
    """The services that the answers are made with."""

    topics: TopicCatalog
    config: ConfigStore
    clock: Clock
    clock_watch: ClockWatch
    probes: BrokerProbes


def _preview(services: PreviewServices, asked: Asked) -> object:
    topic = find_topic(services.topics, asked.path["topic"], asked.caller)
    config = services.config.topic_config_with(topic.name, asked.settings)
    partitions = find_partitions(topic, asked.fields["partition"])
    now_ms = services.clock.now_ms()
    previews = []
    for partition in partitions:
        learn_all_times(services.probes, partition.log)
        would = preview(partition.log, config, now_ms)
        already = preview(partition.log, partition.log.config, now_ms)
        previews.append((partition.index, would, already))
    return {
        "topic": topic.name,
        "now": instant(now_ms),
        "set": asked.settings,
        "hold": hold_state(services.clock, services.clock_watch),
        "goes": _total([would for _, would, _ in previews]),
        "goes_anyway": _total([already for _, _, already in previews]),
        "partitions": [
            {"partition": index, **_leaving(would), "goes_anyway": _leaving(already)}
            for index, would, already in previews
        ],
    }


def _leaving(found: Leaving) -> dict[str, object]:
    return {
        "segments": found.segments,
        "size_bytes": found.size_bytes,
        "offsets": found.offsets,
        "first_offset": found.first_offset if found.offsets else None,
        "last_offset": found.start_offset - 1 if found.offsets else None,
        "log_start_offset": found.start_offset,
        "oldest": instant_or_none(found.oldest_ms),
        "newest": instant_or_none(found.newest_ms),
        "because": found.reasons,
    }


def _total(found: list[Leaving]) -> dict[str, object]:
    oldest = [each.oldest_ms for each in found if each.oldest_ms is not None]
    newest = [each.newest_ms for each in found if each.newest_ms is not None]
    return {
        "segments": sum(each.segments for each in found),
        "size_bytes": sum(each.size_bytes for each in found),
        "offsets": sum(each.offsets for each in found),
        "oldest": instant_or_none(min(oldest, default=None)),
        "newest": instant_or_none(max(newest, default=None)),
    }


ROUTES = (
    HttpRoute(
        PreviewServices,
        "GET",
        "/api/topics/{topic}/retention/preview",
        "The removals of the next round of retention with these settings: any setting of a "
        "topic is a parameter. Nothing changes.",
        needs=SEES_TOPIC,
        read=_preview,
        parameters=(Parameter("partition", count(0, 2**31 - 1), "This partition only"),),
        takes_settings=True,
    ),
)
