"""`__transaction_state`: where transactional ids are remembered."""

from typing import TYPE_CHECKING

from broker.state.state_topic import StateTopic, StateTopicPlan
from broker.topics.names import TRANSACTION_STATE

if TYPE_CHECKING:
    from broker.state.services import StateServices
    from config.broker import BrokerConfig


def transaction_state_topic(services: "StateServices") -> StateTopic:
    """The topic, as transactions write to it."""
    return StateTopic(services, TRANSACTION_STATE, _plan)


def _plan(settings: "BrokerConfig") -> StateTopicPlan:
    return StateTopicPlan(
        settings.transaction_state_log_num_partitions,
        settings.transaction_state_log_segment_bytes,
        "uncompressed",
    )
