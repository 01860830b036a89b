"""Settings as DescribeConfigs and `horolog config explain` show them: value, source, synonyms."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from config.key import ConfigKey, Spelling
from config.layers import (
    OF_A_RESOURCE,
    Candidate,
    Layer,
    Setting,
    SettingSource,
    candidates,
    is_pinned,
)
from config.listener_keys import listener_keys
from config.names import DESCRIBED_BROKER_KEYS, DESCRIBED_TOPIC_KEYS
from config.values import KafkaType


@dataclass(frozen=True, slots=True)
class Synonym:
    """One of the values set for a key; the first of them is in force.

    A key that topics alone have, without a default on the broker, has none but its own (as Kafka).
    """

    name: str
    value: str | None
    source: SettingSource


@dataclass(frozen=True, slots=True)
class Described:
    """One entry of a DescribeConfigs answer. `value` is None when it is sensitive.

    `where` is the place the value was written (flag, variable, file and line); the wire has no room
    for it, `explain` has.
    """

    name: str
    value: str | None
    source: SettingSource
    read_only: bool
    sensitive: bool
    synonyms: tuple[Synonym, ...]
    kafka_type: KafkaType
    documentation: str
    default: str
    where: str = ""

    @property
    def is_default(self) -> bool:
        """True for a default value, as DescribeConfigs version 0 asks."""
        return self.source is SettingSource.DEFAULT


def describe_topic(
    layers: Sequence[Layer], names: Collection[str] | None = None
) -> list[Described]:
    """Every setting of a topic, or those of `names`; aliases only when set on the topic itself."""
    own = layers[0]
    entries = [
        _entry(key, spelling.name, layers)
        for key, spelling in _shown(DESCRIBED_TOPIC_KEYS, own.settings, on_topic=True)
    ]
    return _chosen(entries, names)


def describe_resource(
    keys: Iterable[ConfigKey], layers: Sequence[Layer], names: Collection[str] | None = None
) -> list[Described]:
    """Every setting of a group or a subscription, or those of `names`."""
    return _chosen([_entry(key, key.name, layers) for key in keys], names)


def describe_broker(
    layers: Sequence[Layer], names: Collection[str] | None = None
) -> list[Described]:
    """Every setting of the broker, or those of `names`; second spellings only when set."""
    is_set = {name for layer in layers for name in layer.settings}
    keys = sorted((*DESCRIBED_BROKER_KEYS, *listener_keys(layers)), key=lambda key: key.broker_name)
    entries = [
        _entry(key, spelling.name, layers) for key, spelling in _shown(keys, is_set, on_topic=False)
    ]
    return _chosen(entries, names)


def in_force(key: ConfigKey, layers: Sequence[Layer]) -> str:
    """The text of a key's value, in the key's own unit."""
    best = next(candidates(key, layers), None)
    return key.default_text if best is None else _in_own_unit(best.setting)


def _shown(
    keys: Iterable[ConfigKey], is_set: Collection[str], *, on_topic: bool
) -> Iterator[tuple[ConfigKey, Spelling]]:
    """Each key under its plain name, and under the hidden names that are set."""
    seen: set[str] = set()
    for key in keys:
        for spelling in key.on_topic if on_topic else key.on_broker:
            if (not spelling.hidden or spelling.name in is_set) and spelling.name not in seen:
                seen.add(spelling.name)
                yield key, spelling


def _entry(key: ConfigKey, name: str, layers: Sequence[Layer]) -> Described:
    is_resource = layers[0].source in OF_A_RESOURCE  # its own settings are above a flag
    found = list(candidates(key, layers))
    if name not in (key.name, key.broker_name):
        found = [each for each in found if each.setting.name == name]
    synonyms = [_synonym(key, each) for each in found]
    if key.on_broker:
        default = None if key.sensitive else key.default_text
        synonyms.append(Synonym(key.broker_name, default, SettingSource.DEFAULT))
    value = key.default_text
    if found:
        best = found[0].setting
        is_own = name in (key.name, key.broker_name) and not best.reference
        value = _in_own_unit(best) if is_own else best.shown
    return Described(
        name=name,
        value=None if key.sensitive else value,
        source=synonyms[0].source if synonyms else SettingSource.DEFAULT,
        read_only=not key.dynamic or (not is_resource and is_pinned(key, layers)),
        sensitive=key.sensitive,
        synonyms=tuple(synonyms),
        kafka_type=key.kafka_type,
        documentation=key.doc,
        default=key.default_text,
        where=found[0].setting.where if found else "",
    )


def _synonym(key: ConfigKey, candidate: Candidate) -> Synonym:
    value = None if key.sensitive else candidate.setting.shown
    return Synonym(candidate.setting.name, value, candidate.source)


def _in_own_unit(setting: Setting) -> str:
    """Hours given under `log.retention.hours` are milliseconds as `retention.ms`."""
    if isinstance(setting.value, int) and not isinstance(setting.value, bool):
        return str(setting.value)
    return setting.text


def _chosen(entries: list[Described], names: Collection[str] | None) -> list[Described]:
    return entries if names is None else [entry for entry in entries if entry.name in names]
