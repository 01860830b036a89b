"""/api/config: every setting of the broker, its value, and where the value is from."""

from typing import TYPE_CHECKING, NamedTuple

from broker.http.port.caller import Needs
from broker.http.port.parameters import Asked
from broker.http.port.route import HttpRoute
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType

if TYPE_CHECKING:
    from config.describe import Described


class SettingServices(NamedTuple):
    """The services that the answers are made with."""

    config: ConfigStore


def _settings(services: SettingServices, _: Asked) -> object:
    return {"settings": [_entry(each) for each in services.config.describe_broker()]}


def _entry(entry: "Described") -> dict[str, object]:
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
        SettingServices,
        "GET",
        "/api/config",
        "Every setting of the broker with its value, its default, and where the value was set.",
        needs=Needs(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),
        read=_settings,
        is_early=True,
    ),
)
