"""Changes to a set of overrides, as IncrementalAlterConfigs and AlterConfigs ask for them.

Pure: overrides in, overrides out, nothing stored. Everything is checked before anything is given
back, so a refused request leaves no trace.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from config.errors import ConfigError, ConfigRequestError
from config.layers import Setting
from config.names import Named
from config.values import KafkaType

Lookup = Callable[[str], Named]
Inherited = Callable[[str], str]


class Operation(IntEnum):
    """Operations on a key, by the numbers of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Alteration:
    """One key of an IncrementalAlterConfigs request."""

    name: str
    operation: Operation
    value: str | None = None


def altered(
    overrides: Mapping[str, Setting],
    alterations: Iterable[Alteration],
    lookup: Lookup,
    inherited: Inherited,
) -> dict[str, Setting]:
    """`overrides` after `alterations`.

    `inherited(name)` is the text in force without the override: what APPEND and SUBTRACT begin with
    when nothing is overridden yet. Raises ConfigRequestError for a null value or a key named twice,
    ConfigError for an unknown key, a value out of bounds, or a list operation on what is no list.
    """
    result = dict(overrides)
    touched: set[str] = set()
    for each in alterations:
        if each.name in touched:
            raise ConfigRequestError(each.name, f"{each.name} is named twice in one request")
        touched.add(each.name)
        if each.operation is Operation.DELETE:
            result.pop(each.name, None)  # of any name: what is not there is taken back already
            continue
        before = overrides.get(each.name)
        text = _new_text(each, lookup(each.name), before, inherited)
        result[each.name] = read_setting(each.name, text, lookup)
    return result


def replaced(values: Mapping[str, str | None], lookup: Lookup) -> dict[str, Setting]:
    """The overrides of an AlterConfigs or CreateTopics request: these and no others."""
    return {name: read_setting(name, _given(name, text), lookup) for name, text in values.items()}


def read_setting(name: str, text: str, lookup: Lookup, *, where: str = "") -> Setting:
    """One name and its text, checked; ConfigError says what is wrong and where it was written."""
    try:
        value, canonical = lookup(name).parse(text)
    except ConfigError as error:
        raise error.at(where) from error
    return Setting(name, value, canonical, where)


def _new_text(
    alteration: Alteration, named: Named, before: Setting | None, inherited: Inherited
) -> str:
    name, given = alteration.name, _given(alteration.name, alteration.value)
    if alteration.operation is Operation.SET:
        return given
    if named.spelling.type.kafka_type is not KafkaType.LIST:
        raise ConfigError(
            name, f"{name}: {alteration.operation.name} works on lists, and this is none"
        )
    words = _words(before.text if before is not None else inherited(name))
    if alteration.operation is Operation.APPEND:
        return ",".join(dict.fromkeys([*words, *_words(given)]))
    unwanted = set(_words(given))
    return ",".join(word for word in words if word not in unwanted)


def _given(name: str, text: str | None) -> str:
    if text is None:
        raise ConfigRequestError(name, f"{name}: a null value is not a setting; delete the key")
    return text


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
