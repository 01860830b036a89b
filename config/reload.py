"""Settings that are read again while the broker runs: what of them counts now, what at a restart.

A layer keeps its rank. Of each, the keys that may change at run time are taken over; those that are
read at start stay as they are, and are named, so that nobody takes them for changed. The last layer
has what follows from a key that is read at start (`config.fleet.rules`), and stays whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from config.describe import in_force
from config.key import ConfigKey
from config.layers import Layer
from config.listener_keys import listener_keys
from config.names import BROKER_KEYS, TOPIC_KEYS, broker_name

_KEYS: tuple[ConfigKey, ...] = (*BROKER_KEYS, *(key for key in TOPIC_KEYS if key.on_broker))


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The outcome of a reload, with the names of keys on the broker."""

    layers: tuple[Layer, ...]
    """Layers in force from now on, highest first."""
    changed: tuple[str, ...]
    """Keys with another value than before."""
    at_restart: tuple[str, ...]
    """Keys whose new value counts after a restart only."""


def reloaded(before: Sequence[Layer], after: Sequence[Layer]) -> Reloaded:
    """Joins the layers that were fixed at start and those that were read again; same ranks."""
    pairs = zip(before[:-1], after[:-1], strict=True)
    layers = (*(_merged(old, new) for old, new in pairs), *before[-1:])
    keys = (*_KEYS, *listener_keys([*before, *after]))
    return Reloaded(
        layers,
        tuple(key.broker_name for key in keys if in_force(key, before) != in_force(key, layers)),
        tuple(key.broker_name for key in keys if in_force(key, layers) != in_force(key, after)),
    )


def _merged(old: Layer, new: Layer) -> Layer:
    settings = {
        name: setting for name, setting in new.settings.items() if broker_name(name).is_dynamic
    }
    settings.update(
        (name, setting)
        for name, setting in old.settings.items()
        if not broker_name(name).is_dynamic
    )
    return Layer(new.source, settings, new.pinned)
