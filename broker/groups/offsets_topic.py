"""`__consumer_offsets`: where groups are remembered."""

from typing import TYPE_CHECKING

from broker.state.state_topic import StateTopic, StateTopicPlan
from broker.topics.names import CONSUMER_OFFSETS
from protocol.records.compression import codec_of

if TYPE_CHECKING:
    from broker.state.services import StateServices
    from config.broker import BrokerConfig


def offsets_topic(services: "StateServices") -> StateTopic:
    """The topic, as the groups write to it."""
    return StateTopic(services, CONSUMER_OFFSETS, _plan)


def _plan(settings: "BrokerConfig") -> StateTopicPlan:
    return StateTopicPlan(
        settings.offsets_topic_num_partitions,
        settings.offsets_topic_segment_bytes,
        "producer",
        codec_of(settings.offsets_topic_compression_codec),
    )
