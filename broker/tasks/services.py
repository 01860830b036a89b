"""The services that the background tasks look after."""

from asyncio import AbstractEventLoop
from typing import Protocol

from broker.guards.admission import Intake
from broker.guards.clock_guard import ClockWatch
from broker.guards.crash_guard import CrashGuard
from broker.guards.disk_space import DiskSpace
from broker.partitions.group_commit import GroupCommit
from broker.runtime.lanes import DiskLanes
from broker.runtime.memory_account import MemoryAccount
from broker.runtime.probes import BrokerProbes
from broker.tasks.runner import TaskRunner
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from storage.directory.log_manager import LogManager
from storage.env import Clock, Env


class TaskServices(Protocol):
    """Used on the event loop, by the loop's own tasks."""

    catalog: TopicCatalog
    clock: Clock
    clock_watch: ClockWatch
    commit: GroupCommit
    config: ConfigStore
    crash_guard: CrashGuard
    disk_space: DiskSpace
    env: Env
    intake: Intake
    lanes: DiskLanes
    log_dir: str
    log_manager: LogManager
    loop: AbstractEventLoop
    memory: MemoryAccount
    probes: BrokerProbes
    tasks: TaskRunner
