"""One back-up of a data directory into a tier's layout, while a broker may be at work there.

The state topics come first, so that no committed offset is ahead of the records; all others end
where they were synced at one moment after that. The picture of topics and settings is put last, and
makes the back-up count: one that is cut off leaves the back-up before it, and what it has sent is
not sent again. Nothing in the directory is changed, and no lock of it is taken.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from storage.backup.partition_backup import CopyCount, PartitionBackup, Source
from storage.backup.run_clock import RunClock
from storage.backup.still_file import DirectoryChanged
from storage.backup.still_log import KnownOffsets, PartitionGone, TieredElsewhere, synced_below
from storage.cleaner.cleanable_logs import CleanerOffsets
from storage.env import Env
from storage.errors import CorruptCheckpoint, CorruptLog, StorageError
from storage.files.checkpoints import OffsetCheckpoint
from storage.files.layout import (
    META_PROPERTIES_FILE,
    RECOVERY_POINTS_FILE,
    RESTORING_FILE,
    PartitionName,
    parse_partition_dir,
)
from storage.files.meta_properties import read_meta_properties
from storage.files.start_offsets import StartOffsets
from storage.tier.card import claim
from storage.tier.carrying import NotAsSent, Pace
from storage.tier.cluster_picture import (
    TOPICS_FILE,
    Content,
    Files,
    Picture,
    PictureWriter,
    newest,
)
from storage.tier.names import CLUSTER, PartitionKeys
from storage.tier.port import ObjectMissing, ObjectStore, StoreDenied, StoreError
from storage.tier.restore import STATE_TOPICS
from storage.tier.single_writer import LatePut, WriterReplaced

PAUSES_SECONDS = (0.2, 1.0, 5.0, 15.0)
"""Between tries of a partition for which the store failed."""


class BackupRefused(StorageError):  # noqa: N818 - what happened
    """There is nothing to back up, or its place is another's. Nothing was changed."""


class BackupProgress(NamedTuple):
    """Reports of a back-up while it is at work."""

    partitions: Callable[[int], object] = lambda _: None
    """Called once, with their number."""
    partition: Callable[[PartitionKeys], object] = lambda _: None
    """Called when one begins."""


class BackupOrder(NamedTuple):
    """A back-up as it is asked for."""

    log_dir: str
    files: Callable[[], Files]
    """Reads the files at the top of the directory that a picture repeats."""
    partitions_of: Callable[[Files], Sequence[PartitionKeys]]
    """The partitions of all topics in such files."""
    progress: BackupProgress = BackupProgress()
    pace: Pace = lambda size_bytes: None  # noqa: ARG005 - a default
    """Called with the bytes that are about to be sent; may wait."""
    pause: Callable[[float], object] = lambda seconds: None  # noqa: ARG005 - a default
    """Waits so many seconds."""


class PartitionCopy(NamedTuple):
    """One partition after a back-up."""

    keys: PartitionKeys
    sent: CopyCount
    damage: str = ""
    """Reason why the place has it as it was before; empty: it has all of it."""


class Backup(NamedTuple):
    """Result of a back-up."""

    picture: Picture
    partitions: tuple[PartitionCopy, ...]


def back_up(env: Env, store: ObjectStore, order: BackupOrder) -> Backup:
    """Copies the directory. Blocks for as long as disk and store do.

    A damaged log is left as the place has it, and named in the result. BackupRefused, ForeignTier;
    WriterReplaced when another back-up is at work there, TierMismatch when the place has more than
    the directory; CorruptCheckpoint, NewerFormat, StoreError, DiskError: the back-up before it
    counts, and the next one goes on behind what was sent.
    """
    clock = RunClock(env.clock)
    cluster_id, node_id = _identity(env, order.log_dir)
    _check_topics(env, order)
    claim(store, cluster_id)
    before = newest(store)
    if before is not None:
        _check_is_backup(before)
        clock.pass_by(before.written_ms)
    began_ms = clock.now_ms()
    since_ms = None if before is None else before.began_ms
    source = Source(env, order.log_dir, store, clock, order.pace, order.pause, since_ms)
    copies = _Run(source, order).copies()
    content = Content(cluster_id, node_id, order.files())
    try:
        picture = PictureWriter(store, clock).write_backup(content, began_ms)
    except LatePut as late:
        raise _another(late) from late
    return Backup(picture, copies)


def _another(late: LatePut) -> WriterReplaced:
    """Another back-up is at work, or was a moment ago: this one's view of the place is over."""
    return WriterReplaced(late.path, "another back-up has made it")


def _identity(env: Env, log_dir: str) -> tuple[str, int]:
    fs = env.fs
    if fs.exists(f"{log_dir}/{RESTORING_FILE}"):
        raise BackupRefused(log_dir, "a restore into it has not come to its end")
    meta = read_meta_properties(fs, f"{log_dir}/{META_PROPERTIES_FILE}")
    if meta is None or meta.cluster_id is None or meta.node_id is None:
        raise BackupRefused(log_dir, "it is no data directory: no broker has started on it")
    return meta.cluster_id, meta.node_id


def _check_topics(env: Env, order: BackupOrder) -> None:
    """BackupRefused where logs are and no list of topics, as in a directory of a Kafka."""
    if TOPICS_FILE in order.files():
        return
    names = (each.name for each in env.fs.list_dir(order.log_dir) if each.is_dir)
    if any(parse_partition_dir(name) for name in names):
        raise BackupRefused(
            order.log_dir, f"it has no {TOPICS_FILE}: horolog serve has not started on it yet"
        )


def _check_is_backup(picture: Picture) -> None:
    if picture.began_ms is None:
        raise BackupRefused(
            CLUSTER, "this place is a broker's tier, which copies by itself: give another one"
        )


class _Run:
    """All partitions of one back-up."""

    def __init__(self, source: Source, order: BackupOrder) -> None:
        self._source = source
        self._order = order

    def copies(self) -> tuple[PartitionCopy, ...]:
        partitions = self._order.partitions_of(self._order.files())
        self._order.progress.partitions(len(partitions))
        state = [each for each in partitions if each.topic in STATE_TOPICS]
        others = [each for each in partitions if each.topic not in STATE_TOPICS]
        known = self._known()
        done = [self._copy(keys, None, known) for keys in state]
        known = self._known()
        moment = self._synced(others, known)
        done += [self._copy(keys, moment.get(_name(keys)), known) for keys in others]
        return tuple(each for each in done if each is not None)

    def _synced(
        self, partitions: Sequence[PartitionKeys], known: KnownOffsets
    ) -> Mapping[PartitionName, int]:
        """Ends of what is synced of all logs, within moments of each other."""
        source, points = self._source, known.recovery_points
        return {
            name: synced_below(source.env, PartitionBackup(source, keys).path, points.get(name, 0))
            for keys in partitions
            for name in (_name(keys),)
        }

    def _copy(
        self, keys: PartitionKeys, below: int | None, known: KnownOffsets
    ) -> PartitionCopy | None:
        """None: the topic was deleted meanwhile."""
        self._order.progress.partition(keys)
        work = PartitionBackup(self._source, keys)
        try:
            self._again(lambda: work.run(self._known, below, known))
        except PartitionGone:
            return None
        except (NotAsSent, TieredElsewhere, ObjectMissing):
            raise
        except (CorruptLog, DirectoryChanged) as error:
            return PartitionCopy(keys, work.sent, str(error))
        return PartitionCopy(keys, work.sent)

    def _again(self, call: Callable[[], None]) -> None:
        """Once more after a while where the store failed, or spoilt what was sent."""
        for seconds in PAUSES_SECONDS:
            try:
                return call()
            except LatePut as late:
                raise _another(late) from late
            except (StoreDenied, ObjectMissing):
                raise
            except (StoreError, NotAsSent):
                self._order.pause(seconds)
        return call()

    def _known(self) -> KnownOffsets:
        """The directory's checkpoints. CorruptCheckpoint, DiskError."""
        fs, log_dir = self._source.env.fs, self._source.log_dir
        points = OffsetCheckpoint(fs, f"{log_dir}/{RECOVERY_POINTS_FILE}").load()
        starts = StartOffsets(fs, log_dir).load()
        cleaner = CleanerOffsets(fs, log_dir)
        damage = [*filter(None, (points.damage, starts.damage)), *cleaner.load()]
        if damage:
            raise CorruptCheckpoint(log_dir, damage[0])
        cleaned = {PartitionName(*name): cleaner.clean_part(name) for name in cleaner.first_dirty}
        return KnownOffsets(points.offsets, starts.offsets, cleaned)


def _name(keys: PartitionKeys) -> PartitionName:
    return PartitionName(keys.topic, keys.partition)
