"""Rules of groups and subscriptions as resources with settings: one row for each kind."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from config.alter import Lookup
from config.broker import BrokerConfig
from config.errors import ConfigRequestError
from config.key import ConfigKey
from config.layers import Layer, Setting, SettingSource, snapshot
from config.resources.client_metrics import (
    CLIENT_METRICS_KEYS,
    check_client_metrics,
    client_metrics_name,
)
from config.resources.group import GROUP_KEYS, GroupConfig, check_group, group_name
from config.resources.kinds import ResourceKind

MOST_NAMES = 10_000
"""Groups that have settings: each takes memory, and room in the file."""
MOST_SUBSCRIPTIONS = 500
"""Each is matched with every client that asks which metrics to push."""
MOST_CHARACTERS_OF_A_NAME = 4096

Settings = Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class ResourceRules:
    """The keys of a kind of resource, and the check of a new set of them."""

    source: SettingSource
    keys: tuple[ConfigKey, ...]
    lookup: Lookup
    check: Callable[[Settings, list[Layer], BrokerConfig], None]
    """Takes the settings, the layers of the broker, and what they add up to."""
    most_names: int
    """Resources of the kind that may have settings."""


def _check_group(settings: Settings, layers: list[Layer], broker: BrokerConfig) -> None:
    own = Layer(SettingSource.GROUP, settings)
    check_group(settings, snapshot(GroupConfig, [own, *layers]), broker)


def _check_client_metrics(settings: Settings, _: list[Layer], __: BrokerConfig) -> None:
    check_client_metrics(settings)


RULES: Mapping[ResourceKind, ResourceRules] = MappingProxyType(
    {
        ResourceKind.GROUP: ResourceRules(
            SettingSource.GROUP, GROUP_KEYS, group_name, _check_group, MOST_NAMES
        ),
        ResourceKind.CLIENT_METRICS: ResourceRules(
            SettingSource.CLIENT_METRICS,
            CLIENT_METRICS_KEYS,
            client_metrics_name,
            _check_client_metrics,
            MOST_SUBSCRIPTIONS,
        ),
    }
)


def check_room(kind: ResourceKind, name: str, known: Mapping[str, Settings]) -> None:
    """ConfigRequestError for one name too many, or one that is too long."""
    if len(name) > MOST_CHARACTERS_OF_A_NAME:
        raise ConfigRequestError(
            name[:64],
            f"A name of {len(name)} characters is longer than {MOST_CHARACTERS_OF_A_NAME}",
        )
    most = RULES[kind].most_names
    if name not in known and len(known) >= most:
        raise ConfigRequestError(
            name,
            f"{most} resources of kind {kind.name} have settings: take back those of one",
        )
