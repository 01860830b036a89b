"""The declaration language: one statement per key inside a frozen dataclass.

    segment_ms: int = topic_key("segment.ms", millis(1), 604_800_000, broker="log.roll.ms", doc="…")

The attribute's type is checked by mypy against the kind of value and the default. The dataclass
is the typed snapshot; `keys_of` reads the keys back.
"""

from dataclasses import field, fields, replace
from functools import cache
from typing import Any, TypeVar

from config.key import ConfigKey, Spelling
from config.values import ValueType, decimal_text

T = TypeVar("T")


def topic_key(
    name: str,
    type: ValueType[T],  # noqa: A002
    default: T,
    *,
    doc: str,
    broker: str | tuple[str | Spelling, ...] | None,
    aliases: tuple[str, ...] = (),
    first: tuple[Spelling, ...] = (),
    importance: str = "medium",
) -> T:
    """Declares a setting of topics, and by `broker` the names of its default on the broker.

    Always dynamic. `aliases` are older names of the same setting: on the broker they carry the
    prefix `log.`, and the plain name wins over them. `first` are spellings that win over the name.
    """
    names = (broker,) if isinstance(broker, str) else broker or ()
    old = [Spelling(alias, type, hidden=True) for alias in aliases]
    old_broker = [Spelling(f"log.{alias}", type, hidden=True) for alias in aliases]
    return _declare(
        ConfigKey(
            name=name,
            attribute="",
            type=type,
            default=default,
            default_text=_text(default),
            doc=doc,
            on_topic=(*first, Spelling(name, type), *old),
            on_broker=(*(_spelling(each, type) for each in names), *old_broker),
            dynamic=True,
            importance=importance,
            sensitive=False,
        ),
        default,
    )


def group_key(
    name: str,
    type: ValueType[T],  # noqa: A002
    default: T,
    *,
    doc: str,
    broker: str | None,
) -> T:
    """Declares a setting of groups, always dynamic; `broker` is the name of its default there."""
    return topic_key(name, type, default, doc=doc, broker=broker)


def broker_key(
    name: str,
    type: ValueType[T],  # noqa: A002
    default: T,
    *,
    doc: str,
    dynamic: bool = False,
    aliases: tuple[str, ...] = (),
    importance: str = "medium",
    sensitive: bool = False,
) -> T:
    """Declares a setting of the broker alone. Not `dynamic`: read once, at start.

    The value of a `sensitive` one is shown to nobody.
    """
    return _declare(
        ConfigKey(
            name=name,
            attribute="",
            type=type,
            default=default,
            default_text=_text(default),
            doc=doc,
            on_topic=(),
            on_broker=(
                Spelling(name, type),
                *(Spelling(each, type, hidden=True) for each in aliases),
            ),
            dynamic=dynamic,
            importance=importance,
            sensitive=sensitive,
        ),
        default,
    )


def described_key(
    name: str,
    type: ValueType[T],  # noqa: A002
    default: T,
    *,
    doc: str,
    on_topic: bool,
    on_broker: bool,
    broker: str = "",
) -> ConfigKey:
    """A dynamic setting that is in no snapshot, since nobody has to read it.

    `on_topic`: it can be set on a resource itself (see `ConfigKey`). `broker`: its name there,
    where that is another one.
    """
    spellings = (Spelling(name, type),)
    return ConfigKey(
        name=name,
        attribute="",
        type=type,
        default=default,
        default_text=_text(default),
        doc=doc,
        on_topic=spellings if on_topic else (),
        on_broker=(Spelling(broker or name, type),) if on_broker else (),
        dynamic=True,
        importance="low",
        sensitive=False,
    )


def keys_of(config_class: type) -> tuple[ConfigKey, ...]:
    """The keys that a settings class declares, in the order of its statements."""
    return _keys_of(config_class)


@cache
def _keys_of(config_class: type) -> tuple[ConfigKey, ...]:
    return tuple(
        replace(each.metadata["key"], attribute=each.name)
        for each in fields(config_class)
        if "key" in each.metadata
    )


def _declare(declared: ConfigKey, default: T) -> T:
    return field(default=default, metadata={"key": declared}, repr=not declared.sensitive)


def _spelling(name: str | Spelling, kind: ValueType[Any]) -> Spelling:
    return name if isinstance(name, Spelling) else Spelling(name, kind)


def _text(default: object) -> str:
    """A default in the spelling that a user would write; None is the empty text."""
    if default is None:
        return ""
    if isinstance(default, bool):
        return "true" if default else "false"
    if isinstance(default, float):
        return decimal_text(default)
    if isinstance(default, frozenset | tuple):
        return ",".join(
            str(each) for each in (sorted(default) if isinstance(default, frozenset) else default)
        )
    return str(default)
