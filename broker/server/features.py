"""Features with levels that a cluster settles on (KIP-584), and the level of each here.

A level says what is served, so it follows from the version of this broker and stays as it is.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from protocol.api import Api


class Feature(NamedTuple):
    """A feature with levels, and the API without which it is not served."""

    name: str
    oldest: int
    level: int
    api_key: int


METADATA_VERSION = "metadata.version"
FEATURES = (
    Feature(METADATA_VERSION, 7, 30, 3),  # 3.3-IV3 to 4.3-IV0, of Kafka 4.3; Metadata
    Feature("group.version", 0, 1, 68),  # KIP-848; ConsumerGroupHeartbeat
    Feature("share.version", 0, 1, 78),  # KIP-932; ShareFetch
    Feature("streams.version", 0, 1, 88),  # KIP-1071; StreamsGroupHeartbeat
    Feature("transaction.version", 0, 2, 26),  # every end takes an epoch (KIP-890); EndTxn
)


def features_here(
    served: Iterable[Api], limits: Iterable[tuple[str, int]]
) -> Mapping[str, Feature]:
    """The features of a broker, by name; `limits` are highest levels where those are lower."""
    keys, least = {api.key for api in served}, dict(limits)
    return {
        each.name: each._replace(level=min(each.level, least.get(each.name, each.level)))
        for each in FEATURES
        if each.api_key in keys
    }
