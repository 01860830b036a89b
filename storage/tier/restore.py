"""A data directory out of the store alone: what was there when it was last copied.

Segments stay in the store and come when they are asked for; a broker reads topics of its own state
whole at each start, so these come at once (`stays_local`). The directory is marked before the first
file of it is written, and until the last one is durable: no broker starts on a half of one, and the
next restore into it begins again. Nothing in the store is changed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from storage.env import Env
from storage.files.checkpoints import OffsetCheckpoint
from storage.files.layout import (
    CLEANER_HORIZONS_FILE,
    CLEANER_OFFSETS_FILE,
    LEADER_EPOCHS_FILE,
    META_PROPERTIES_FILE,
    PARTITION_METADATA_FILE,
    RECOVERY_POINTS_FILE,
    SNAPSHOT,
    partition_dir_name,
)
from storage.files.meta_properties import (
    MetaProperties,
    write_meta_properties,
    write_partition_metadata,
)
from storage.files.start_offsets import StartOffsets
from storage.log.compaction_state import CleanPart
from storage.producers.leader_epochs import LeaderEpochs
from storage.tier.card import ForeignTier, cluster_of
from storage.tier.cluster_picture import Files, Picture, newest
from storage.tier.download import Download
from storage.tier.manifests import local_state
from storage.tier.manifests.local_state import LocalState
from storage.tier.manifests.manifest import Manifest
from storage.tier.manifests.reading import read_newest
from storage.tier.marked_directory import RestoreRefused, marked_directory
from storage.tier.names import CLUSTER, PartitionKeys
from storage.tier.past_state import PastState, StoredObjects, left_of
from storage.tier.port import ObjectStore

STATE_TOPICS = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))
"""Topics of committed offsets, of transactions and of share groups."""


def stays_local(topic: str) -> bool:
    """True for topics that a broker reads whole at each start."""
    return topic in STATE_TOPICS


class RestoreProgress(NamedTuple):
    """Reports of a restore while it is at work."""

    partitions: Callable[[int], object] = lambda _: None
    """Called once, with their number."""
    partition: Callable[[PartitionKeys], object] = lambda _: None
    """Called when one begins."""
    fetched: Callable[[int], object] = lambda _: None
    """Called with the bytes that have come."""


class Order(NamedTuple):
    """A restore as it is asked for."""

    log_dir: str
    partitions_of: Callable[[Files], Sequence[PartitionKeys]]
    """The partitions of all topics in a picture's files."""
    at_ms: int | None = None
    """As of this moment; None: the newest copy."""
    is_local: Callable[[str], bool] = stays_local
    """True for topics of which the segments come at once."""
    progress: RestoreProgress = RestoreProgress()


class RestoredPartition(NamedTuple):
    """One partition after a restore."""

    keys: PartitionKeys
    manifest: Manifest | None
    """None: nothing of it was ever copied, it begins at 0 without records."""
    is_local: bool
    knows_producers: bool
    """False when the store has no producers of its end: repeated batches are not noticed."""
    starts_later: bool = False
    is_later: bool = False
    """Both as in `storage.tier.past_state.PastState`."""


class Restored(NamedTuple):
    """Result of a restore."""

    picture: Picture
    partitions: tuple[RestoredPartition, ...]


def restore(env: Env, store: ObjectStore, order: Order) -> Restored:
    """Makes the directory, durably. Blocks for as long as store and disk do.

    RestoreRefused, NoTier, ForeignTier; DirectoryLocked; CorruptCheckpoint, CorruptLog for an
    object that is lost or changed; NewerFormat, StoreError, DiskError: the directory stays marked,
    and the next call begins again.
    """
    picture = _picture(store, order.at_ms)
    partitions = order.partitions_of(picture.content.files)
    order.progress.partitions(len(partitions))
    if picture.began_ms is not None:  # a back-up: what is later belongs to none that is complete
        order = order._replace(at_ms=picture.written_ms)
    with marked_directory(env.fs, order.log_dir):
        work = _Restore(env, store, order, is_backup=picture.began_ms is not None)
        done = tuple(work.partition(keys) for keys in partitions)
        work.top(picture, done)
    return Restored(picture, done)


def _picture(store: ObjectStore, at_ms: int | None) -> Picture:
    cluster_id = cluster_of(store)
    picture = newest(store, at_ms)
    if picture is None:
        when = "" if at_ms is None else " from that time or before"
        raise RestoreRefused(CLUSTER, f"the store has no list of topics and settings{when}")
    owner = picture.content.cluster_id
    if owner != cluster_id:
        raise ForeignTier(CLUSTER, f"picture {picture.number} is of {owner}, not of {cluster_id}")
    return picture


class _Restore:
    """One restore at work."""

    def __init__(self, env: Env, store: ObjectStore, order: Order, *, is_backup: bool) -> None:
        self._env = env
        self._store = store
        self._order = order
        self._is_backup = is_backup
        """A back-up keeps what its moments need: an object that is missing is lost."""

    def partition(self, keys: PartitionKeys) -> RestoredPartition:
        """Makes the directory of one partition, unless nothing of it was copied."""
        self._order.progress.partition(keys)
        is_local = self._order.is_local(keys.topic)
        then = read_newest(self._store, keys, self._order.at_ms)
        if then is None:
            return RestoredPartition(keys, None, is_local, knows_producers=True)
        newest = then
        if self._order.at_ms is not None:
            newest = read_newest(self._store, keys) or then
        manifest, starts_later, is_later = self._left_of(keys, then, newest)
        fs, path = self._env.fs, self._path_of(keys)
        fs.make_dir(path)
        write_partition_metadata(fs, f"{path}/{PARTITION_METADATA_FILE}", keys.topic_id)
        self._write_epochs(manifest, newest, path)
        knows = self._write_log(keys, manifest, path, is_local=is_local)
        fs.sync_dir(path)
        knows &= bool(manifest.segments) or not starts_later
        return RestoredPartition(keys, manifest, is_local, knows, starts_later, is_later)

    def _left_of(self, keys: PartitionKeys, then: Manifest, newest: Manifest) -> PastState:
        """State to restore; the store has all its objects."""
        objects = StoredObjects(self._store, keys)
        state = PastState(then)
        if not self._is_backup:
            state = left_of(self._store, keys, then, newest, objects)
        objects.check(state.manifest)
        return state

    def top(self, picture: Picture, done: Sequence[RestoredPartition]) -> None:
        """Writes the files at the top; the directory's identity comes last."""
        fs, content = self._env.fs, picture.content
        StartOffsets(fs, self._order.log_dir).save(_starts(done))
        points = OffsetCheckpoint(fs, f"{self._order.log_dir}/{RECOVERY_POINTS_FILE}")
        points.save(_local_ends(done))
        self._write_clean_parts(done)
        for name, text in content.files.items():
            fs.write_atomically(f"{self._order.log_dir}/{name}", text.encode())
        meta = MetaProperties(content.cluster_id, content.node_id, self._env.rng.uuid())
        path = f"{self._order.log_dir}/{META_PROPERTIES_FILE}"
        write_meta_properties(fs, path, meta, self._env.clock.now_ms())

    def _write_clean_parts(self, done: Sequence[RestoredPartition]) -> None:
        """Writes the parts in which compaction has been: its next run goes on behind them.

        Not where one manifest does not say: offsets that are missing there would be no
        compaction's, by these files.
        """
        found = _clean_parts(done)
        if found is None:
            return
        fs, log_dir = self._env.fs, self._order.log_dir
        horizons = {key: at.horizon_ms for key, at in found.items() if at.horizon_ms >= 0}
        OffsetCheckpoint(fs, f"{log_dir}/{CLEANER_HORIZONS_FILE}").save(horizons)
        ends = {key: at.end_offset for key, at in found.items()}
        OffsetCheckpoint(fs, f"{log_dir}/{CLEANER_OFFSETS_FILE}").save(ends)

    def _write_log(
        self, keys: PartitionKeys, manifest: Manifest, path: str, *, is_local: bool
    ) -> bool:
        """The files of the log itself; whether its producers are known."""
        fetched = self._order.progress.fetched
        download = Download(self._store, keys, self._env.fs, path, fetched)
        if not is_local:
            state = LocalState(manifest, manifest.end_offset)
            local_state.save(self._env.fs, path, state)
            return not manifest.segments or download.snapshot(manifest.segments[-1])
        for segment in manifest.segments:
            download.segment(segment)
        download.empty_segment(manifest.end_offset)
        return not manifest.segments or SNAPSHOT in manifest.segments[-1].parts

    def _write_epochs(self, manifest: Manifest, newest: Manifest, path: str) -> None:
        """The epochs below the end, and a new one from there on.

        Offsets behind the end may have been read before: whoever has them notices by the epoch.
        """
        epochs = LeaderEpochs(self._env.fs, f"{path}/{LEADER_EPOCHS_FILE}")
        for each in manifest.epochs:
            epochs.assign(*each)
        epochs.truncate_to(manifest.end_offset)
        epochs.start_at(manifest.log_start_offset)
        latest = max((each.epoch for each in (*manifest.epochs, *newest.epochs)), default=-1)
        if latest >= 0:
            epochs.assign(latest + 1, manifest.end_offset)
        epochs.save()

    def _path_of(self, keys: PartitionKeys) -> str:
        return f"{self._order.log_dir}/{partition_dir_name(keys.topic, keys.partition)}"


def _local_ends(done: Sequence[RestoredPartition]) -> Mapping[tuple[str, int], int]:
    """Recovery points of logs that came at once: all of them was compared, and is on the disk."""
    return {
        (each.keys.topic, each.keys.partition): each.manifest.end_offset
        for each in done
        if each.manifest is not None and each.is_local
    }


def _clean_parts(done: Sequence[RestoredPartition]) -> Mapping[tuple[str, int], CleanPart] | None:
    """Those of logs in which compaction has been; None when one is not known."""
    found: dict[tuple[str, int], CleanPart] = {}
    for keys, manifest, *_ in done:
        if manifest is None or not manifest.segments:
            continue
        cleaned = manifest.cleaned
        if cleaned is None:
            return None
        if cleaned.end_offset > 0:
            end_offset = min(cleaned.end_offset, manifest.end_offset)
            found[keys.topic, keys.partition] = cleaned._replace(end_offset=end_offset)
    return found


def _starts(done: Sequence[RestoredPartition]) -> Mapping[tuple[str, int], int]:
    """Start offsets of logs that do not begin with their first segment, or lie in the store."""
    return {
        (each.keys.topic, each.keys.partition): each.manifest.log_start_offset
        for each in done
        if each.manifest is not None and each.manifest.log_start_offset > 0
    }
