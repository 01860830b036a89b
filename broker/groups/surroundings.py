"""Surroundings of groups that the broker assigns for: the time, the topics, the settings."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from broker.topics.metadata_image import MetadataImage

if TYPE_CHECKING:
    from config.broker import BrokerConfig
    from config.resources.group import GroupConfig


class Surroundings(NamedTuple):
    """Services of these groups: the wall clock, the topics, the settings in force."""

    now_ms: Callable[[], int]
    image: Callable[[], MetadataImage]
    settings: "Callable[[], BrokerConfig]"
    group_settings: "Callable[[str], GroupConfig]"
