"""The services that records with bad times are quarantined and traced with."""

from typing import Protocol

from broker.runtime.probes import BrokerProbes
from broker.topics.services import TopicServices


class RecordTimeServices(TopicServices, Protocol):
    """Used on the event loop."""

    probes: BrokerProbes
