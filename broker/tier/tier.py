"""The tier of a broker: its store, what of it is here, and who reads and writes there.

Made only where `remote.log.storage.system.enable` is set; nothing is asked of the store before the
first round, so that a start needs none.
"""

import sys
from resource import RLIMIT_NOFILE, getrlimit
from typing import NamedTuple

from broker.access.store.objects import open_store
from broker.access.store.refusals import TierRefused
from broker.runtime.lanes import DiskLane, DiskLanes
from broker.tier.away_lane import StoreReads
from broker.tier.copier.carrier import ProcessCarrier
from broker.tier.copier.process import CopierPlace, CopierProcess
from broker.tier.counted_store import CountedStore
from broker.tier.pace import Pace
from broker.tier.store_account import Purpose, StoreAccount
from broker.tier.tally import TierTally
from broker.tier.trash import Trash
from config.errors import ConfigError
from config.store import ConfigStore
from storage.env import Env
from storage.tier.object_cache import MOST_FILES, ObjectCache
from storage.tier.orphans import OrphanSweep
from storage.tier.port import ObjectStore
from storage.tier.remote_logs import RemoteLogs
from storage.tier.remote_object import Reach

COPIES = "tier-copies"
MOST_COPIERS = 64
"""Threads at most, whatever remote.log.manager.copier.thread.pool.size becomes."""
COPIES_END_SECONDS = 10.0
"""Time of a copy that is under way when the broker stops."""
SHARE_OF_FILES = 8
"""Of the files that the process may have open, the cache has one in so many."""
CACHE_DIR = "-tier-cache"
"""Behind the name of the data directory."""


class Tier(NamedTuple):
    """The parts of it that live as long as the broker."""

    store: ObjectStore
    cache: ObjectCache
    remote: RemoteLogs
    reads: StoreReads
    copies: DiskLane
    copy_pace: Pace
    fetch_pace: Pace
    trash: Trash
    tally: TierTally
    orphans: OrphanSweep
    account: StoreAccount
    copier: CopierProcess

    def stop(self) -> None:
        """Nobody waits for bandwidth any longer; a sweep ends soon, and what is being copied."""
        self.orphans.stop()
        self.copy_pace.stop()
        self.fetch_pace.stop()
        self.copier.end_within(COPIES_END_SECONDS)

    def close(self) -> None:
        """Nobody uses it any longer."""
        self.copier.close()
        self.cache.close()


def make_tier(env: Env, config: ConfigStore, lanes: DiskLanes) -> Tier:
    """The tier as the settings have it. ConfigError when they cannot be used."""
    settings = config.broker_config
    assert settings.horolog_tier_url is not None
    try:
        opened = open_store(settings.horolog_tier_url, allow_http=settings.horolog_tier_allow_http)
    except TierRefused as error:
        raise ConfigError("horolog.tier.url", str(error)) from error
    directory = settings.horolog_tier_cache_dir or settings.log_dir.rstrip("/") + CACHE_DIR
    most_files = min(MOST_FILES, getrlimit(RLIMIT_NOFILE)[0] // SHARE_OF_FILES)
    cache = ObjectCache(env.fs, directory, settings.horolog_tier_cache_bytes, most_files=most_files)
    fetch_pace = Pace(lambda: config.broker_config.remote_log_manager_fetch_max_bytes_per_second)
    copy_pace = Pace(lambda: config.broker_config.remote_log_manager_copy_max_bytes_per_second)
    account = StoreAccount(env.clock.monotonic)
    stores = {purpose: CountedStore(opened, account, purpose) for purpose in Purpose}
    place = CopierPlace(settings.horolog_tier_url, settings.horolog_tier_allow_http)
    copier = CopierProcess(place, env.clock.monotonic)
    reach = Reach(
        stores[Purpose.READ], cache, fetch_pace, copy_pace, account, stores[Purpose.COPY],
        ProcessCarrier(copier, account) if sys.platform == "linux" else None,
    )  # fmt: skip
    remote = RemoteLogs(reach, env)
    return Tier(
        stores[Purpose.CLUSTER],
        cache,
        remote,
        StoreReads(lanes, config),
        lanes.wide_lane(COPIES, MOST_COPIERS),
        copy_pace,
        fetch_pace,
        Trash(stores[Purpose.REMOVAL], env.clock.monotonic),
        TierTally(),
        OrphanSweep(stores[Purpose.SWEEP], env.clock, remote.find),
        account,
        copier,
    )
