"""Settings of one listener: `listener.name.NAME.max.connections`, NAME in small letters (Kafka).

No class declares them, since the names are the operator's: a key is made when a name is used.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from config.key import ConfigKey, Spelling
from config.layers import Layer, candidates
from config.values import INT_MAX, count

_NAME = re.compile(r"listener\.name\.([a-z0-9_.-]{1,200})\.max\.connections", re.ASCII)


@lru_cache(maxsize=256)
def listener_key(name: str) -> ConfigKey | None:
    """The key that a name means; None when it is no setting of a listener."""
    if _NAME.fullmatch(name) is None:
        return None
    return ConfigKey(
        name=name,
        attribute="",
        type=count(1),
        default=INT_MAX,
        default_text=str(INT_MAX),
        doc="Connections at one time by this listener (as Kafka: no limit).",
        on_topic=(),
        on_broker=(Spelling(name, count(1)),),
        dynamic=True,
        importance="medium",
        sensitive=False,
    )


def listener_of(key: ConfigKey) -> str:
    """The listener that a key is for, as `Listener.name` has it."""
    found = _NAME.fullmatch(key.name)
    assert found is not None
    return found[1].upper()


def listener_keys(layers: Iterable[Layer]) -> list[ConfigKey]:
    """The keys of listeners that are set, in the order of their names."""
    names = {name for layer in layers for name in layer.settings}
    return [key for key in map(listener_key, sorted(names)) if key is not None]


def max_connections(layers: Sequence[Layer]) -> dict[str, int]:
    """Connections at one time by listener, of those that have such a limit."""
    return {
        listener_of(key): next(candidates(key, layers)).setting.value
        for key in listener_keys(layers)
    }
