"""A node of a fleet: the services it is made of, and its settings as they are used."""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from broker.access.errors import AccessError
from broker.access.files import read_settings
from broker.access.settings import IN_THE_CLEAR, client_security
from broker.access.store.objects import open_store
from broker.access.store.refusals import TierRefused
from broker.fleet.image import Others
from broker.fleet.local_logs import StorePart
from broker.fleet.peers.peers import PeerAccess, Peers
from broker.fleet.segment_parts import SegmentParts
from broker.fleet.times import FleetTimes
from broker.partitions.commit import CommitPort
from broker.runtime.lanes import DiskLane
from broker.tier.tier import Tier
from broker.topics.topic_catalog import TopicCatalog
from config.broker import BrokerConfig
from config.errors import ConfigError
from config.fleet.rules import CLIENT_CONFIG
from config.security.protocols import PLAINTEXT
from config.store import ConfigStore
from storage.directory.log_manager import LogManager
from storage.env import Env, Rng
from storage.tier.port import ObjectStore


class FleetParts(NamedTuple):
    """Services of the broker that its part of a fleet uses."""

    config: ConfigStore
    topics: TopicCatalog
    logs: LogManager
    lane: DiskLane
    objects: DiskLane
    local: CommitPort
    rng: Rng
    monotonic: Callable[[], float]
    on_nodes: Others
    on_deleted: Callable[[Sequence[str], frozenset[UUID]], None]
    env: Env
    tier: Tier | None
    peers: DiskLane
    stop: Callable[[], None]
    """Has the process stop, as a signal does."""


class LoopClock(NamedTuple):
    """The `FleetClock` of this machine."""

    monotonic: Callable[[], float]
    wall_ms: Callable[[], int]

    async def sleep(self, seconds: float) -> None:
        """As the port has it."""
        await asyncio.sleep(seconds)


def store_part(parts: FleetParts) -> StorePart | None:
    """Segments in the store; None where there is no tier."""
    if parts.tier is None:
        return None
    remote = parts.tier.remote
    segments = SegmentParts(parts.logs, remote.reach.store, parts.env)
    return StorePart(segments, remote, parts.tier.copies)


def commit_store(settings: BrokerConfig) -> ObjectStore:
    """The store that commits go to. ConfigError."""
    assert settings.horolog_tier_url is not None
    try:
        return open_store(settings.horolog_tier_url, allow_http=settings.horolog_tier_allow_http)
    except TierRefused as error:
        raise ConfigError("horolog.tier.url", str(error)) from error


def times_of(settings: BrokerConfig) -> FleetTimes:
    """Waits and sizes, as the settings have them."""
    lease = settings.horolog_fleet_lease_ms / 1000
    return FleetTimes(
        lease=lease,
        renew=lease / 5,
        watch=min(lease / 5, 1.0),
        flush=settings.horolog_fleet_flush_ms / 1000,
        inline_bytes=settings.horolog_fleet_inline_bytes,
        most_row_bytes=settings.horolog_fleet_rows_max_bytes,
        checkpoint=settings.horolog_fleet_checkpoint_ms / 1000,
        load_gap=settings.horolog_fleet_balance_bytes,
    )


def peer_listener(settings: BrokerConfig) -> str:
    """The listener by which nodes ask each other: the first one, unless it is named."""
    return settings.horolog_fleet_listener or settings.client_listeners[0].name


def made_peers(parts: FleetParts) -> Peers | None:
    """The way to the other nodes; None where they could not let this one in. ConfigError."""
    settings, security = parts.config.broker_config, IN_THE_CLEAR
    listener, path = peer_listener(settings), settings.horolog_fleet_client_config
    if path:
        try:
            security = client_security(read_settings(path))
        except AccessError as error:
            raise ConfigError(CLIENT_CONFIG, f"{CLIENT_CONFIG}: {error}") from error
    elif settings.protocol_of(listener) not in {None, PLAINTEXT}:
        return None
    return Peers(PeerAccess(listener, security, parts.peers.run, parts.monotonic))
