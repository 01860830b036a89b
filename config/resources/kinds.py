"""Kinds of things that have settings, by the numbers of DescribeConfigs."""

from enum import IntEnum


class ResourceKind(IntEnum):
    """A kind of resource on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
