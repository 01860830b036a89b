"""The data directory of a broker that stood alone, into a fleet that has nothing.

All records go to the store as segments, whatever their ages, and one statement has them count, with
topics, settings, users, ACLs and quotas. The directory is left to the broker that it is of: what
changes in it is that its newest segments have ended.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, pairwise

from broker.fleet.catalog.rows import (
    ImportedPartition,
    PartitionKey,
    TopicImport,
    TopicRow,
)
from broker.fleet.catalog.shards import shard_of
from broker.fleet.exchange.files import FILES
from broker.fleet.image import SETTINGS
from broker.topics.names import TRANSACTION_STATE
from config.store import ConfigStore
from storage.directory.log_manager import LogManager
from storage.directory.producer_ids_file import FILE_NAME as IDS_FILE
from storage.directory.producer_ids_file import first_unused, parse
from storage.directory.topics_file import FILE_NAME as TOPICS_FILE
from storage.directory.topics_file import partitions_in
from storage.env import Env
from storage.errors import StorageError
from storage.files.layout import FLEET_FILE, META_PROPERTIES_FILE, REMOTE_FILE, partition_dir_name
from storage.files.meta_properties import MetaProperties, read_meta_properties
from storage.log.log import Log
from storage.tier.carrying import StoreCarrier
from storage.tier.copying import Destination, copy_segment
from storage.tier.manifests.manifest import Manifest, RemoteSegment, render_full
from storage.tier.names import EpochKeys, PartitionKeys, number_of, unique_text
from storage.tier.port import ObjectStore
from storage.tier.restore import RestoreProgress

WRITER = "import"
IdsOf = Callable[[Log], Iterable[int]]
"""Producer ids in a partition of `__transaction_state`. StorageError. Blocks."""


class ImportRefused(StorageError):  # noqa: N818 - what happened
    """The directory cannot go into a fleet as it is. Nothing was changed."""


class DirectoryImport:
    """One import at work. Calls block."""

    def __init__(self, env: Env, store: ObjectStore, log_dir: str, ids_of: IdsOf) -> None:
        """Nothing is read."""
        self._ids_of = ids_of
        self._env = env
        self._store = store
        self._log_dir = log_dir
        self._config = ConfigStore()
        self._logs = LogManager(env, log_dir, self._config.topic_config)
        self._files: Mapping[str, str] = {}
        self._ids_below = 0

    def identity(self) -> MetaProperties:
        """The directory's. ImportRefused for one that is none of a broker alone."""
        fs, found = self._env.fs, None
        if fs.exists(self._log_dir):
            found = read_meta_properties(fs, f"{self._log_dir}/{META_PROPERTIES_FILE}")
        if found is None or fs.exists(f"{self._log_dir}/{FLEET_FILE}"):
            raise ImportRefused(self._log_dir, "it is no directory of a broker that stood alone")
        return found

    def open(self, identity: MetaProperties) -> None:
        """Locks it, and recovers its logs. ImportRefused, DirectoryLocked, ConfigError, DiskError,
        CorruptCheckpoint, NewerFormat: it is as it was.
        """
        fs = self._env.fs
        names = (TOPICS_FILE, IDS_FILE, *FILES.values())
        paths = {name: f"{self._log_dir}/{name}" for name in names}
        self._files = {name: fs.read_text(at) for name, at in paths.items() if fs.exists(at)}
        if FILES[SETTINGS] in self._files:
            self._config.restore(self._files[FILES[SETTINGS]])
        self._logs.open_directory(identity.cluster_id or "", identity.node_id or 0)
        try:
            self._logs.load()
            self._check()
            self._ids_below = self._first_unused()
        except BaseException:
            self._logs.close()
            raise

    def copied(self, shards: int, progress: RestoreProgress) -> TopicImport:
        """Sends all records to the store; what the rows are to have of them. StorageError."""
        partitions = sorted(partitions_in(self._files))
        progress.partitions(len(partitions))
        done: list[ImportedPartition] = []
        for keys in partitions:
            progress.partition(keys)
            done.append(self._partition(keys, shards))
        documents = {
            document: self._files[name].encode()
            for document, name in FILES.items()
            if name in self._files
        }
        return TopicImport(_topics(partitions, done), done, documents, self._ids_below)

    def close(self) -> None:
        """The directory is its broker's again."""
        self._logs.close()

    def _first_unused(self) -> int:
        """The producer id from which on the fleet gives them out."""
        stored = parse(f"{self._log_dir}/{IDS_FILE}", self._files.get(IDS_FILE))
        logs = [each for each in self._logs.logs.values() if each.topic == TRANSACTION_STATE]
        of_transactions = chain.from_iterable(map(self._ids_of, logs))
        return first_unused(stored, chain(self._logs.producer_ids(), of_transactions))

    def _check(self) -> None:
        for log in self._logs.logs.values():
            name = partition_dir_name(log.topic, log.partition)
            if self._env.fs.exists(f"{self._log_dir}/{name}/{REMOTE_FILE}"):
                raise ImportRefused(name, "a part of it is in a tier: horolog restore --download")
            if any(entry.has_open_transaction for _, entry in log.producers):
                raise ImportRefused(
                    name, "a transaction is open in it: start the broker, and let it end"
                )

    def _partition(self, keys: PartitionKeys, shards: int) -> ImportedPartition:
        key = PartitionKey(keys.topic_id, keys.partition)
        shard = shard_of(keys.topic_id, keys.partition, shards)
        log = self._logs.logs.get((keys.topic, keys.partition))
        if log is None:
            return ImportedPartition(key, shard, 0, 0, 0, 0)
        epoch = max(log.leader_epoch, 0)
        rows = self._segments(log, EpochKeys(keys, epoch))
        start, end = log.snapshot.log_start_offset, log.snapshot.log_end_offset
        if not rows:
            return ImportedPartition(key, shard, max(start, end), end, epoch, 0)
        number = self._manifest(log, EpochKeys(keys, epoch), rows)
        return ImportedPartition(key, shard, start, end, epoch, number)

    def _segments(self, log: Log, keys: EpochKeys) -> tuple[RemoteSegment, ...]:
        if log.snapshot.end_position:
            log.roll()
        log.mark_durable(log.sync())
        segments = log.snapshot.segments
        carrier = StoreCarrier(self._store, lambda _: None)
        rows = []
        for segment, after in pairwise(segments):
            unique = unique_text(self._env.rng.uint64())
            to = Destination(carrier, keys, unique, lambda _: None)
            rows.append(copy_segment(log, segment, after.base_offset, to))
        return tuple(rows)

    def _manifest(self, log: Log, keys: EpochKeys, rows: tuple[RemoteSegment, ...]) -> int:
        listed = (number_of(each.key) for each in self._store.list(keys.manifests))
        number = max((each for each in listed if each is not None), default=0) + 1
        manifest = Manifest(
            number, *keys, log.snapshot.log_start_offset, rows, log.epochs.entries, WRITER,
            self._env.clock.now_ms(),
            self._logs.cleaner_offsets.clean_part((log.topic, log.partition)),
        )  # fmt: skip
        self._store.put_new(keys.manifest(number), render_full(manifest))
        return number


def _topics(
    partitions: Sequence[PartitionKeys], done: Sequence[ImportedPartition]
) -> Sequence[TopicRow]:
    topics: dict[str, TopicRow] = {}
    for keys, each in zip(partitions, done, strict=True):
        row = topics.get(keys.topic, TopicRow(keys.topic_id, keys.topic, ()))
        topics[keys.topic] = row._replace(shards=(*row.shards, each.shard_id))
    return list(topics.values())
