"""Layers of settings, and the snapshot that results: a higher layer wins over all below it.

Within one layer the spelling that comes first in the key's declaration wins (`log.retention.ms`
over `log.retention.hours`; an explicit timestamp bound over the alias that sets both).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar

from config.declare import keys_of
from config.key import ConfigKey

C = TypeVar("C")


class SettingSource(IntEnum):
    """Sources of a value, by the numbers of a DescribeConfigs answer."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


OF_A_RESOURCE = frozenset((SettingSource.TOPIC, SettingSource.CLIENT_METRICS, SettingSource.GROUP))
"""Sources of what is set on a topic, a subscription or a group itself."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One name set in one place: the typed value, its text, where it was written.

    `reference`: what was written there, if that refers to a secret elsewhere; shown in its place.
    """

    name: str
    value: Any
    text: str
    where: str = ""
    reference: str = ""

    @property
    def shown(self) -> str:
        """The text as it may be shown."""
        return self.reference or self.text


@dataclass(frozen=True, slots=True)
class Layer:
    """Settings of one origin, by the name they were given under.

    `pinned`: the flags of the start, which win over what is stored at run time; their keys cannot
    be changed then.
    """

    source: SettingSource
    settings: Mapping[str, Setting]
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value for a key, and the layer that gives it."""

    setting: Setting
    source: SettingSource


def candidates(key: ConfigKey, layers: Sequence[Layer]) -> Iterator[Candidate]:
    """Every value set for `key`, the one in force first; nothing when only its default is left."""
    for layer in layers:
        spellings = key.on_topic if layer.source in OF_A_RESOURCE else key.on_broker
        for spelling in spellings:
            setting = layer.settings.get(spelling.name)
            if setting is not None:
                yield Candidate(setting, layer.source)


def is_pinned(key: ConfigKey, layers: Sequence[Layer]) -> bool:
    """True when a flag of the start sets `key`, by any of its names."""
    pinned = [layer for layer in layers if layer.pinned]
    return bool(pinned) and next(candidates(key, pinned), None) is not None


def snapshot(config_class: type[C], layers: Sequence[Layer]) -> C:
    """The typed settings that `layers`, highest first, add up to."""
    values: dict[str, Any] = {}
    for key in keys_of(config_class):
        best = next(candidates(key, layers), None)
        if best is not None:
            values[key.attribute] = best.setting.value
    return config_class(**values)
