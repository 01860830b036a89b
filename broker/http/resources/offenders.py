"""/api/dirty: who sent records with bad times, where to, how wrong, and what became of them."""

from typing import NamedTuple, cast

from broker.http.port.parameters import Asked, Parameter, ParameterKind, count
from broker.http.port.route import HttpRoute
from broker.http.resources.topics import SEES_TOPICS, find_topic
from broker.record_times.offenders import DirtyClients
from broker.topics.topic_catalog import TopicCatalog
from config.quantities import instant
from storage.env import Clock

MAX_CLIENTS = 1000


class OffenderServices(NamedTuple):
    """The services that the answers are made with."""

    dirty_clients: DirtyClients
    topics: TopicCatalog
    clock: Clock


def _dirty(services: OffenderServices, asked: Asked) -> object:
    topic, limit = asked.fields["topic"], asked.fields["limit"]
    if topic is not None:
        find_topic(services.topics, topic, asked.caller)
    known = services.dirty_clients.report()
    entries = cast("list[dict[str, object]]", known["clients"])
    clients = [
        each
        for each in entries
        if topic in {None, each["topic"]} and asked.caller.sees_topic(str(each["topic"]))
    ]
    return {
        "now": instant(services.clock.now_ms()),
        "clients": [offender_entry(each) for each in clients[:limit]],
        "clients_in_all": len(clients),
        "forgotten_entries": known["forgotten_entries"],
        "forgotten_records": known["forgotten_records"],
    }


def offender_entry(entry: dict[str, object]) -> dict[str, object]:
    """An entry with its times in both forms: `worst_timestamp_ms` becomes `worst_timestamp`."""
    return {
        name.removesuffix("_ms") if _is_instant(name) else name: (
            instant(value) if _is_instant(name) and isinstance(value, int) else value
        )
        for name, value in entry.items()
    }


def _is_instant(name: str) -> bool:
    return name in {"worst_timestamp_ms", "first_seen_ms", "last_seen_ms"}


ROUTES = (
    HttpRoute(
        OffenderServices,
        "GET",
        "/api/dirty",
        "Clients that sent bad times, most records first: id, address, partition, offsets, worst "
        "skew, reason and action.",
        needs=SEES_TOPICS,
        read=_dirty,
        parameters=(
            Parameter("topic", ParameterKind(lambda text, _: text), "Of this topic only"),
            Parameter("limit", count(1, MAX_CLIENTS), "Clients in the answer", 100),
        ),
    ),
)
