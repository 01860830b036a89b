"""The services that quotas are kept and counted with."""

from typing import Protocol

from broker.runtime.lanes import DiskLanes
from broker.runtime.probes import BrokerProbes
from config.store import ConfigStore
from storage.env import Env


class QuotaServices(Protocol):
    """Used on the event loop."""

    config: ConfigStore
    env: Env
    lanes: DiskLanes
    log_dir: str
    probes: BrokerProbes
