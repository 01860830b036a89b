"""Times that the broker takes in several units, as DescribeConfigs of Kafka shows them.

`log.retention.ms`, `.minutes` and `.hours` are settings of their own there, each with the larger
units among its synonyms: what stands under another name is not shown under this one. The largest
unit alone has a default. `horolog config explain` shows what is in force instead.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import dropwhile

from config.describe import Described, Synonym, describe_broker, describe_topic
from config.key import ConfigKey, Spelling
from config.layers import OF_A_RESOURCE, Candidate, Layer, SettingSource, candidates
from config.names import TOPIC_KEYS

IN_UNITS = tuple(key for key in TOPIC_KEYS if key.units)
_BY_TOPIC_NAME = {key.name: key for key in IN_UNITS}
_UNITS = {unit.name for key in IN_UNITS for unit in key.units}


def describe_broker_units(
    layers: Sequence[Layer], names: Collection[str] | None = None
) -> list[Described]:
    """As `describe_broker`, with an entry for each unit."""
    others = [each for each in describe_broker(layers, names) if each.name not in _UNITS]
    entries = [*others, *_entries(layers)]
    chosen = (each for each in entries if names is None or each.name in names)
    return sorted(chosen, key=lambda each: each.name)


def describe_topic_units(
    layers: Sequence[Layer], names: Collection[str] | None = None
) -> list[Described]:
    """As `describe_topic`; a default on the broker in a larger unit is no synonym by itself."""
    return [
        _of_topic(each, _BY_TOPIC_NAME[each.name], layers) if each.name in _BY_TOPIC_NAME else each
        for each in describe_topic(layers, names)
    ]


def _entries(layers: Sequence[Layer]) -> Iterator[Described]:
    for key in IN_UNITS:
        (whole,) = describe_broker(layers, [key.broker_name])
        for unit in key.units:
            yield _of_unit(whole, key, unit, layers)


def _of_unit(
    whole: Described, key: ConfigKey, unit: Spelling, layers: Sequence[Layer]
) -> Described:
    found = [each for each in candidates(key, layers) if each.setting.name == unit.name]
    synonyms = _synonyms(key, unit, candidates(key, layers))
    return replace(
        whole,
        name=unit.name,
        value=found[0].setting.shown if found else unit.default_text or None,
        source=synonyms[0].source if synonyms else SettingSource.DEFAULT,
        synonyms=synonyms,
        kafka_type=unit.type.kafka_type,
        where=found[0].setting.where if found else "",
    )


def _of_topic(whole: Described, key: ConfigKey, layers: Sequence[Layer]) -> Described:
    own = tuple(each for each in whole.synonyms if each.source in OF_A_RESOURCE)
    of_broker = (each for each in candidates(key, layers) if each.source not in OF_A_RESOURCE)
    synonyms = (*own, *_synonyms(key, key.units[0], of_broker))
    source = synonyms[0].source if synonyms else SettingSource.DEFAULT
    return replace(whole, source=source, synonyms=synonyms)


def _synonyms(key: ConfigKey, unit: Spelling, found: Iterable[Candidate]) -> tuple[Synonym, ...]:
    """From the first value under the name itself on, values in this unit and in larger ones."""
    larger = [each.name for each in key.units[key.units.index(unit) :]]
    told = [
        Synonym(each.setting.name, each.setting.shown, each.source)
        for each in found
        if each.setting.name in larger
    ]
    last = key.units[-1]
    told.append(Synonym(last.name, last.default_text, SettingSource.DEFAULT))
    return tuple(dropwhile(lambda each: each.name != unit.name, told))
