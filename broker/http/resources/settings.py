"""/api/config: every setting of the broker, its value, and where the value is from."""

from typing import TYPE_CHECKING

from broker.http.port.parameters import Asked
from broker.http.port.route import HttpRoute

if TYPE_CHECKING:
    from broker.http.port.services import HttpServices
    from config.describe import Described


def _settings(broker: "HttpServices", _: Asked) -> object:
    return {"settings": [_told(each) for each in broker.config.describe_broker()]}


def _told(entry: "Described") -> dict[str, object]:
    return {
        "name": entry.name,
        "value": entry.value,
        "default": entry.default,
        "source": entry.source.name.lower(),
        "where": entry.where or None,
        "changes": "at start only" if entry.read_only else "at run time",
        "doc": entry.documentation,
    }


ROUTES = (
    HttpRoute(
        "GET",
        "/api/config",
        "Every setting of the broker with its value, its default, and where the value was set.",
        read=_settings,
        is_early=True,
    ),
)
