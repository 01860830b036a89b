"""Parts of a fleet's logs that lie in the store as segments, by the manifests that the rows name.

The leader of an epoch writes manifests of its own, which begin with what the last named one has.
So what a leader of before still writes there counts for nothing.
"""

from typing import NamedTuple

from broker.fleet.catalog.rows import PartitionKey, PartitionRow
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.errors import CorruptCheckpoint
from storage.files.layout import LEADER_EPOCHS_FILE, SNAPSHOT
from storage.log.following import EpochRange
from storage.log.log import Log
from storage.producers.leader_epochs import LeaderEpochs
from storage.tier import local_state
from storage.tier.download import Download
from storage.tier.local_state import LocalState
from storage.tier.manifest import Manifest
from storage.tier.manifest_chain import read_one
from storage.tier.names import EpochKeys, PartitionKeys
from storage.tier.port import ObjectStore
from storage.tier.remote_logs import RemoteLogs


class SegmentParts(NamedTuple):
    """The store's part of a node. Calls that ask the store block, on a lane of its own."""

    logs: LogManager
    remote: RemoteLogs
    store: ObjectStore
    env: Env

    def manifest_of(self, row: PartitionRow) -> Manifest:
        """The state that the rows name; the empty one where they name none, or where the log
        begins behind it. Asks the store.

        CorruptCheckpoint, ObjectMissing, StoreError.
        """
        keys = _keys_of(row)
        empty = Manifest(0, *keys, log_start_offset=row.log_start_offset)
        if row.manifest is None:
            return empty
        found = read_one(self.store, EpochKeys(keys, row.manifest.epoch), row.manifest.number)
        if (found.topic, found.topic_id, found.partition) != tuple(keys):
            raise CorruptCheckpoint(keys.prefix, "the manifest is another partition's")
        return found if found.end_offset > row.log_start_offset else empty

    def adopted(self, row: PartitionRow, manifest: Manifest, *, is_local: bool) -> Log:
        """A log of which all is in the store. Blocks, and asks the store for its producers.

        Segments whose end the store has no snapshot of come along: a start reads them. So do all
        of them where `is_local` says so: of a log that compaction rewrites. CorruptLog, StoreError,
        DiskError.
        """
        keys, fs = _keys_of(row), self.env.fs
        known = [each.end_offset for each in manifest.segments if SNAPSHOT in each.parts]
        local_start = max(known, default=manifest.segments[0].base_offset)
        if is_local:
            local_start = manifest.segments[0].base_offset

        def write(path: str) -> None:
            epochs = LeaderEpochs(fs, f"{path}/{LEADER_EPOCHS_FILE}")
            for each in manifest.epochs:
                epochs.assign(*each)
            epochs.truncate_to(manifest.end_offset)
            epochs.save()
            download = Download(self.store, keys, fs, path, lambda _: None)
            for segment in manifest.segments:
                if segment.end_offset == local_start:
                    download.snapshot(segment)
                elif segment.end_offset > local_start:
                    download.segment(segment)
            if local_start < manifest.end_offset:
                download.empty_segment(manifest.end_offset)
            local_state.save(fs, path, LocalState(_begun(manifest), local_start))

        log = self.logs.adopt_log(*_place(keys), keys.topic_id, write)
        if is_local and manifest.cleaned is not None:
            clean = manifest.cleaned
            self.logs.cleaned(log, min(clean.end_offset, manifest.end_offset), clean.horizon_ms)
        return log

    def note(self, log: Log, manifest: Manifest) -> None:
        """The directory knows this state, whatever a leader of before has written there. DiskError.

        A log that is opened again has it.
        """
        state = LocalState(_begun(manifest), log.snapshot.local_start_offset)
        local_state.save(self.env.fs, log.files.path, state)

    def lead(self, log: Log, manifest: Manifest, epoch: int) -> None:
        """The log reads what the store has, and this node writes manifests of this epoch."""
        start = log.snapshot.local_start_offset if manifest.segments else 0
        self.remote.led(log, LocalState(_begun(manifest), start), epoch)


def ranges_of(manifest: Manifest, begin: int) -> list[EpochRange]:
    """Epochs of the part in the store, from `begin` on."""
    starts = [each.start_offset for each in manifest.epochs]
    ends = [*starts[1:], manifest.end_offset]
    found = [
        EpochRange(each.epoch, max(each.start_offset, begin), min(end, manifest.end_offset))
        for each, end in zip(manifest.epochs, ends, strict=True)
    ]
    return [each for each in found if each.begin < each.end]


def _begun(manifest: Manifest) -> Manifest:
    """As the next leader begins with it."""
    return manifest._replace(number=0)


def _keys_of(row: PartitionRow) -> PartitionKeys:
    return PartitionKeys(row.topic, row.partition.topic_id, row.partition.number)


def _place(keys: PartitionKeys) -> tuple[str, int]:
    return keys.topic, keys.partition


def key_of(log: Log) -> PartitionKey | None:
    """The key of a log's partition in the rows."""
    return None if log.topic_id is None else PartitionKey(log.topic_id, log.partition)
