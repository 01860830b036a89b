"""`__share_group_state`: where share groups remember records."""

from typing import TYPE_CHECKING

from broker.state.state_topic import StateTopic, StateTopicPlan
from broker.topics.names import SHARE_GROUP_STATE
from protocol.records.compression import codec_of

if TYPE_CHECKING:
    from broker.state.services import StateServices
    from config.broker import BrokerConfig

NEVER = "-1"


def share_state_topic(services: "StateServices") -> StateTopic:
    """The topic, as the share coordinator writes to it."""
    return StateTopic(services, SHARE_GROUP_STATE, _plan)


def _plan(settings: "BrokerConfig") -> StateTopicPlan:
    """Not compacted: that would lose all updates but the last one."""
    return StateTopicPlan(
        settings.share_coordinator_state_topic_num_partitions,
        settings.share_coordinator_state_topic_segment_bytes,
        "producer",
        codec_of(settings.share_coordinator_state_topic_compression_codec),
        cleanup=(("cleanup.policy", "delete"), ("retention.ms", NEVER)),
    )
