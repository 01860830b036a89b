"""The work of a broker with a tier: copies, retention of copies, sweeps, and room on the disk.

Loaded only where `remote.log.storage.system.enable` asks for a tier.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from broker.guards.clock_guard import ClockWatch
from broker.guards.disk_space import DiskSpace
from broker.runtime.lanes import DiskLane
from broker.server.services import bound
from broker.tasks.runner import TaskRunner
from broker.tier.room import RoomParts, TierRoom
from broker.tier.standing import TierOwner, TierStanding
from broker.tier.sweep import Sweep, SweepParts
from broker.tier.tier import Tier
from broker.tier.tiering import Tiering
from broker.tier.tiering_parts import TierParts
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from storage.directory.log_manager import LogManager
from storage.env import Clock, Env
from storage.log.log import Log

if TYPE_CHECKING:
    from broker.daemon.fleet import Fleet


class TierTaskServices(NamedTuple):
    """The services that a tier works with."""

    tier: Tier
    topics: TopicCatalog
    logs: LogManager
    config: ConfigStore
    env: Env
    clock: Clock
    clock_watch: ClockWatch
    lane: DiskLane
    disk_space: DiskSpace
    tasks: TaskRunner
    node_id: int
    fleet: "Fleet | None"


class TierCalls(NamedTuple):
    """Calls of a tier to its broker."""

    monotonic: Callable[[], float]
    """Of the machine, whatever the broker's clock does."""
    sync: Callable[[Log], None]
    """Has a log synced soon."""
    slow_producers: Callable[[bool], None]
    """True: producers get what the disk has room for, until the next call says False."""


class TierTasks(NamedTuple):
    """The parts that work in the background."""

    standing: TierStanding
    tiering: Tiering
    sweep: Sweep
    room: TierRoom


def made_tier_tasks(services: object, calls: TierCalls) -> TierTasks:
    """All of them; AttributeError for a service that is not there yet."""
    found: TierTaskServices = bound(TierTaskServices, services)
    standing = TierStanding(TierOwner(found.tier, found.logs, found.env, found.lane, found.node_id))
    return TierTasks(
        standing,
        _made_tiering(found, standing, calls),
        _made_sweep(found, standing),
        _made_room(found, calls),
    )


def _made_tiering(found: TierTaskServices, standing: TierStanding, calls: TierCalls) -> Tiering:
    return Tiering(
        TierParts(
            found.topics,
            found.logs,
            found.config,
            found.clock,
            found.clock_watch,
            found.lane,
            found.tier,
            standing,
            calls.sync,
            found.disk_space,
            None if found.fleet is None else found.fleet.segments,
        )
    )


def _made_sweep(found: TierTaskServices, standing: TierStanding) -> Sweep:
    is_shared = found.fleet is not None
    return Sweep(
        SweepParts(found.topics, found.config, found.clock_watch, found.tier, standing, is_shared)
    )


def _made_room(found: TierTaskServices, calls: TierCalls) -> TierRoom:
    return TierRoom(
        RoomParts(
            found.disk_space,
            found.tier,
            found.logs,
            found.lane,
            calls.monotonic,
            lambda: found.tasks.hasten("tier"),
            calls.slow_producers,
        )
    )
