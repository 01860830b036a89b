"""Features with levels that a cluster settles on (KIP-584), and the level of each here.

A level says what is served, so it follows from the version of this broker, in a fleet from those of
all nodes that live.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from protocol.api import Api


class Feature(NamedTuple):
    """A feature with levels, and the API without which it is not served."""

    name: str
    oldest: int
    level: int
    api_key: int


METADATA_VERSION = "metadata.version"
TRANSACTION_VERSION = "transaction.version"
FEATURES = (
    Feature(METADATA_VERSION, 7, 30, 3),  # 3.3-IV3 to 4.3-IV0, of Kafka 4.3; Metadata
    Feature("group.version", 0, 1, 68),  # KIP-848; ConsumerGroupHeartbeat
    Feature("share.version", 0, 1, 78),  # KIP-932; ShareFetch
    Feature("streams.version", 0, 1, 88),  # KIP-1071; StreamsGroupHeartbeat
    Feature(TRANSACTION_VERSION, 0, 2, 26),  # every end takes an epoch (KIP-890); EndTxn
)


Limits = Iterable[tuple[str, int]]
"""Highest levels of features, where they are not those of this version."""


class FeatureLevels(Protocol):
    """The levels that a cluster has settled on."""

    @property
    def supported(self) -> Limits:
        """Limits of what this broker could serve."""

    @property
    def finalized(self) -> Limits:
        """Limits of what the cluster serves."""

    @property
    def epoch(self) -> int:
        """Rises with each change: clients believe the highest (KIP-584)."""


class LevelsAlone:
    """The `FeatureLevels` of a broker alone: those of its version, for ever."""

    supported: Limits = ()
    finalized: Limits = ()
    epoch = 0


def features_here(served: Iterable[Api], limits: Limits) -> Mapping[str, Feature]:
    """The features of a broker, by name; `limits` are highest levels where those are lower."""
    keys, least = {api.key for api in served}, dict(limits)
    return {
        each.name: each._replace(level=min(each.level, least.get(each.name, each.level)))
        for each in FEATURES
        if each.api_key in keys
    }
