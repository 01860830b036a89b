"""The services that the topics of the coordinators are written and read back with."""

from dataclasses import dataclass

from broker.runtime.lanes import DiskLane
from broker.runtime.probes import BrokerProbes
from broker.topics.creation import TopicRules
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from storage.env import Clock


@dataclass(frozen=True, slots=True)
class StateServices:
    """Used on the event loop."""

    topics: TopicCatalog
    rules: TopicRules
    config: ConfigStore
    clock: Clock
    lane: DiskLane
    probes: BrokerProbes
