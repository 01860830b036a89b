"""/api/dirty: who sent records with bad times, where to, how wrong, and what became of them."""

from typing import TYPE_CHECKING, cast

from broker.http.port.parameters import Asked, Parameter, ParameterKind, count
from broker.http.port.route import HttpRoute
from broker.http.resources.topics import find_topic
from config.quantities import instant

if TYPE_CHECKING:
    from broker.http.port.services import HttpServices

MAX_CLIENTS = 1000


def _dirty(broker: "HttpServices", asked: Asked) -> object:
    topic, limit = asked.fields["topic"], asked.fields["limit"]
    if topic is not None:
        find_topic(broker, topic)
    known = broker.dirty_clients.report()
    entries = cast("list[dict[str, object]]", known["clients"])
    clients = [each for each in entries if topic in {None, each["topic"]}]
    return {
        "now": instant(broker.clock.now_ms()),
        "clients": [told(each) for each in clients[:limit]],
        "clients_in_all": len(clients),
        "forgotten_entries": known["forgotten_entries"],
        "forgotten_records": known["forgotten_records"],
    }


def told(entry: dict[str, object]) -> dict[str, object]:
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
        "GET",
        "/api/dirty",
        "Clients that sent bad times, most records first: id, address, partition, offsets, worst "
        "skew, reason and action.",
        read=_dirty,
        parameters=(
            Parameter("topic", ParameterKind(lambda text, _: text), "Of this topic only"),
            Parameter("limit", count(1, MAX_CLIENTS), "Clients in the answer", 100),
        ),
    ),
)
