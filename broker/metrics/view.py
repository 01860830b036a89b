"""The services that metrics read, and nothing else of the broker."""

from typing import NamedTuple

from broker.fetching.sessions import FetchSessions
from broker.groups.coordinator import GroupCoordinator
from broker.guards.clock_guard import ClockWatch
from broker.guards.disk_space import DiskSpace
from broker.partitions.fetch_waiters import FetchWaiters
from broker.partitions.group_commit import GroupCommit
from broker.quotas.service import Quotas
from broker.record_times.offenders import DirtyClients
from broker.record_times.quarantine import Quarantine
from broker.runtime.memory_account import MemoryAccount
from broker.runtime.probes import BrokerProbes
from broker.runtime.readiness import Readiness
from broker.server.server import Server
from broker.tasks.cleaner import Cleaner
from broker.tasks.retention import Retention
from broker.tasks.rolling import Rolling
from broker.tasks.runner import TaskRunner
from broker.tasks.scrubber import Scrubber
from broker.topics.topic_catalog import TopicCatalog
from broker.transactions.coordinator import TransactionCoordinator
from protocol.api import Api
from storage.directory.log_manager import LogManager
from storage.env import Clock, Env


class MetricsView(NamedTuple):
    """Bound once, at the first scrape; read on a thread."""

    env: Env
    clock: Clock
    clock_watch: ClockWatch
    node_id: int
    log_dir: str
    topics: TopicCatalog
    logs: LogManager
    fetch_sessions: FetchSessions
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    waiters: FetchWaiters
    commit: GroupCommit
    memory: MemoryAccount
    probes: BrokerProbes
    dirty_clients: DirtyClients
    quarantine: Quarantine
    quotas: Quotas
    disk_space: DiskSpace
    server: Server
    tasks: TaskRunner
    retention: Retention
    rolling: Rolling
    cleaner: Cleaner
    scrubber: Scrubber
    served: tuple[Api, ...]
    readiness: Readiness
