"""The services that topics and their settings are made and changed with."""

from typing import Protocol

from broker.guards.disk_space import DiskSpace
from broker.runtime.lanes import DiskLanes
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from storage.env import Clock, Env


class TopicServices(Protocol):
    """Used on the event loop."""

    catalog: TopicCatalog
    clock: Clock
    config: ConfigStore
    disk_space: DiskSpace
    env: Env
    lanes: DiskLanes
    log_dir: str
    node_id: int
