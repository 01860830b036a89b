"""The services that the HTTP API shows and moves, and nothing else of the broker."""

from typing import Protocol

from broker.groups.coordinator import GroupCoordinator
from broker.guards.admission import Intake
from broker.guards.clock_guard import ClockWatch
from broker.guards.crash_guard import CrashGuard
from broker.record_times.offenders import DirtyClients
from broker.runtime.admin_trail import AdminTrail
from broker.runtime.lanes import DiskLanes
from broker.runtime.probes import BrokerProbes
from broker.server.server import Server
from broker.tasks.cleaner import Cleaner
from broker.tasks.retention import Retention
from broker.tasks.runner import TaskRunner
from broker.tasks.scrubber import Scrubber
from broker.tasks.test_clock_control import HeldTime
from broker.topics.topic_catalog import TopicCatalog
from broker.transactions.coordinator import TransactionCoordinator
from config.store import ConfigStore
from storage.directory.log_manager import LogManager
from storage.env import Clock


class HttpServices(Protocol):
    """A broker as the HTTP API sees it. Used on the event loop, or on a thread where said."""

    clock: Clock
    clock_watch: ClockWatch
    config: ConfigStore
    log_dir: str
    catalog: TopicCatalog
    log_manager: LogManager
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    lanes: DiskLanes
    probes: BrokerProbes
    dirty_clients: DirtyClients
    trail: AdminTrail
    crash_guard: CrashGuard
    intake: Intake
    server: Server
    tasks: TaskRunner
    retention: Retention
    cleaner: Cleaner
    scrubber: Scrubber
    held_time: HeldTime | None
    ready: bool
    not_ready_because: str
