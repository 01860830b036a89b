"""The APIs that a broker serves: those of the registry that have a handler."""

from collections.abc import Mapping
from functools import cache

from broker.daemon.routes import served
from broker.daemon.telemetry import serves
from config.store import ConfigStore
from protocol.api import Api


@cache
def served_apis() -> Mapping[int, Api]:
    """The APIs of a broker with default settings, by key, in the order of keys."""
    return {each.api.key: each.api for each in served(serves(ConfigStore(), None))}
