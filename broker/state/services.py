"""The services that the topics of the coordinators are written and read back with."""

from typing import Protocol

from broker.runtime.probes import BrokerProbes
from broker.topics.services import TopicServices


class StateServices(TopicServices, Protocol):
    """Used on the event loop."""

    probes: BrokerProbes
