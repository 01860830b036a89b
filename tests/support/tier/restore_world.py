"""Restores of simulated logs out of their simulated store, and what is compared afterwards."""

from collections.abc import Callable
from copy import copy
from typing import Any

from config.topic import TopicConfig
from storage.directory.log_manager import LogManager
from storage.directory.topics_file import CatalogState, TopicEntry, render
from storage.env import Env
from storage.errors import StorageError
from storage.tier.card import claim
from storage.tier.cluster_picture import TOPICS_FILE, Content, Files, PictureWriter
from storage.tier.object_cache import ObjectCache
from storage.tier.port import ObjectStore
from storage.tier.remote_logs import RemoteLogs
from storage.tier.remote_object import Reach
from storage.tier.restore import Order, Restored, restore, stays_local
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.logs import NO_BOUNDS
from tests.support.tier.tier_life import CLUSTER_ID, partitions_in
from tests.support.tier.tier_world import KEYS, CountingStore, TierWorld

LOG_DIR = "/data"


def clock_of(world: TierWorld) -> SimClock:
    """The clock that both sides of a restore have."""
    assert isinstance(world.env.clock, SimClock)
    return world.env.clock


def take_picture(world: TierWorld, partitions: int = 1) -> Files:
    """Puts into the store what the broker of this topic does, beside its logs."""
    topics = {KEYS.topic: TopicEntry(KEYS.topic_id, partitions)}
    files = {TOPICS_FILE: render(CatalogState(topics)).decode()}
    claim(world.store, CLUSTER_ID)
    writer = PictureWriter(world.store, world.env.clock)
    writer.write_if_changed(Content(CLUSTER_ID, 1, files))
    return files


def restore_into(
    env: Env,
    store: CountingStore,
    at_ms: int | None = None,
    is_local: Callable[[str], bool] = stays_local,
) -> Restored:
    """A restore into `LOG_DIR`."""
    return restore(env, store, Order(LOG_DIR, partitions_in, at_ms, is_local))


def fresh_env(world: TierWorld, fs: SimFileSystem | None = None) -> Env:
    """Another machine at the same time."""
    return sim_env(99, fs, clock_of(world))


def restored(world: TierWorld, at_ms: int | None = None) -> TierWorld:
    """The log on another machine, out of the store; the first one stays as it is."""
    other = copy(world)
    other.env = fresh_env(world)
    restore_into(other.env, world.store, at_ms)
    other.open()
    return other


def started(env: Env, store: ObjectStore | None = None, **settings: Any) -> LogManager:
    """A log manager on a restored directory, with the tier where there is a store."""
    return started_in(env, LOG_DIR, store, **settings)


def started_in(
    env: Env, log_dir: str, store: ObjectStore | None = None, **settings: Any
) -> LogManager:
    """The same for a directory of any name; a start that is refused leaves nothing open."""
    config = TopicConfig(**{**NO_BOUNDS, **settings})
    cache = ObjectCache(env.fs, f"{log_dir}-cache", 1 << 26)
    if store is not None:
        cache.open()
    remote = None if store is None else RemoteLogs(Reach(store, cache), env)
    manager = LogManager(env, log_dir, lambda topic: config, remote)
    try:
        manager.open_directory("", 1)
        manager.load()
    except StorageError:
        cache.close()
        raise
    return manager
