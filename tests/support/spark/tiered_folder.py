"""A log in a data directory on this machine and its part in a store in memory, for readers."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pipeline.directories import tier_log, tier_manifests
from pipeline.sources import tier_views
from storage.files.layout import PARTITION_METADATA_FILE
from storage.files.meta_properties import write_partition_metadata
from storage.posix import real_env
from storage.recovery.loading import LoadHints
from storage.tier.manifests import local_state
from storage.tier.port import ObjectStore
from storage.tier.remote_object import Reach
from storage.tier.tiered_log import TieredLog
from tests.support.records.logs import open_log
from tests.support.spark.pipeline_logs import SMALL
from tests.support.tier.tier_world import KEYS, CountingStore, TierWorld

URL = "s3://bucket/tier"


class WeighingStore(CountingStore):
    """Counts the bytes as well: `bytes_of` ranges, by the ending of the object's name."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes_of: Counter[str] = Counter()

    def get_range(self, key: str, position: int, size: int) -> bytes:
        data = super().get_range(key, position, size)
        self.bytes_of[key.rpartition(".")[2]] += len(data)
        return data

    def forget(self) -> None:
        """Begins to count again."""
        self.asked.clear()
        self.bytes_of.clear()


class TieredFolder(TierWorld):
    """Partition `t-0` of the data directory `folder`."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.known: list[tuple[int, int]] = []
        """Offsets and times of its records."""
        super().__init__(real_env(), **{**SMALL, **settings})
        self.store: WeighingStore = WeighingStore()
        self.open()

    def open(self, *, is_clean: bool = True) -> None:
        """As the base, in the folder."""
        path = str(self.folder / f"{KEYS.topic}-{KEYS.partition}")
        cache = self.begin_cache(str(self.folder.parent / "cache"))
        known = local_state.load(self.env.fs, path) if Path(path).exists() else None
        hints = LoadHints(is_clean)
        if known is not None:
            hints = known.added_to(hints)
        self.log = open_log(self.env, hints, path, **self.settings)
        write_partition_metadata(self.env.fs, f"{path}/{PARTITION_METADATA_FILE}", KEYS.topic_id)
        self.tiered = TieredLog(self.log, KEYS, Reach(self.store, cache), self.env, known)
        self.tiered.show()


def serve(monkeypatch: pytest.MonkeyPatch, store: ObjectStore) -> None:
    """Readers find this store, whatever they ask for."""
    for module in (tier_log, tier_manifests, tier_views):
        monkeypatch.setattr(module, "store_at", lambda _: store)
    tier_manifests._partition.cache_clear()
