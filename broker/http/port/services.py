"""The services that the HTTP API shows and moves, and nothing else of the broker."""

from typing import NamedTuple

from broker.groups.coordinator import GroupCoordinator
from broker.guards.admission import Intake
from broker.guards.clock_guard import ClockWatch
from broker.guards.crash_guard import CrashGuard
from broker.record_times.offenders import DirtyClients
from broker.runtime.admin_trail import AdminTrail
from broker.runtime.lanes import DiskLane
from broker.runtime.probes import BrokerProbes
from broker.runtime.readiness import Readiness
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


class HttpServices(NamedTuple):
    """Bound once, with the first connection. Used on the event loop, or on a thread where said."""

    clock: Clock
    clock_watch: ClockWatch
    config: ConfigStore
    topics: TopicCatalog
    logs: LogManager
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    lane: DiskLane
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
    readiness: Readiness
