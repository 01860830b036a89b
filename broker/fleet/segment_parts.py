"""Parts of a fleet's logs that lie in the store as segments, by the manifests that the rows name.

The leader of an epoch writes manifests of its own, which begin with what the last named one has.
So what a leader of before still writes there counts for nothing.
"""

from typing import NamedTuple

from broker.fleet.catalog.rows import PartitionRow
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.errors import CorruptCheckpoint
from storage.files.layout import LEADER_EPOCHS_FILE, SNAPSHOT
from storage.log.following import EpochRange
from storage.log.log import Log
from storage.producers.leader_epochs import LeaderEpochs
from storage.tier.download import Download
from storage.tier.manifests import local_state
from storage.tier.manifests.local_state import LocalState
from storage.tier.manifests.manifest import Manifest
from storage.tier.manifests.reading import read_one
from storage.tier.names import EpochKeys, PartitionKeys
from storage.tier.port import ObjectStore


class SegmentParts(NamedTuple):
    """The store's part of a node. Calls that ask the store block, on a lane of its own."""

    logs: LogManager
    store: ObjectStore
    env: Env

    def manifest_of(self, row: PartitionRow) -> Manifest:
        """As `named_manifest`."""
        return named_manifest(self.store, row)

    def adopted(self, row: PartitionRow, manifest: Manifest, *, is_local: bool) -> Log:
        """A log of which all is in the store. Blocks, and asks the store for its producers.

        Segments whose end the store has no snapshot of come along: a start reads them. So do all
        of them where `is_local` says so: of a log that compaction rewrites. CorruptLog, StoreError,
        DiskError.
        """
        keys, fs = keys_of(row), self.env.fs
        first = manifest.segments[0].base_offset
        known = [each.end_offset for each in manifest.segments if SNAPSHOT in each.parts]
        local_start = first if is_local else max(known, default=first)

        def write(path: str) -> None:
            self._bring(keys, manifest, local_start, path)
            local_state.save(fs, path, LocalState(begun(manifest), local_start))

        log = self.logs.adopt_log(*_place(keys), keys.topic_id, write)
        if is_local:
            self._note_clean_part(log, manifest)
        return log

    def whole(self, row: PartitionRow, manifest: Manifest) -> Log:
        """A log with all segments, that needs no store. As `adopted`."""
        keys, first = keys_of(row), manifest.segments[0].base_offset
        log = self.logs.adopt_log(
            *_place(keys), keys.topic_id, lambda path: self._bring(keys, manifest, first, path)
        )
        self._note_clean_part(log, manifest)
        return log

    def _bring(self, keys: PartitionKeys, manifest: Manifest, local_start: int, path: str) -> None:
        """Segments from there on, the producers before them, and all epochs."""
        epochs = LeaderEpochs(self.env.fs, f"{path}/{LEADER_EPOCHS_FILE}")
        for each in manifest.epochs:
            epochs.assign(*each)
        epochs.truncate_to(manifest.end_offset)
        epochs.save()
        download = Download(self.store, keys, self.env.fs, path, lambda _: None)
        for segment in manifest.segments:
            if segment.end_offset == local_start:
                download.snapshot(segment)
            elif segment.end_offset > local_start:
                download.segment(segment)
        if local_start < manifest.end_offset:
            download.empty_segment(manifest.end_offset)

    def _note_clean_part(self, log: Log, manifest: Manifest) -> None:
        clean = manifest.cleaned
        if clean is not None and clean.end_offset:
            end_offset = min(clean.end_offset, manifest.end_offset)
            self.logs.cleaned(log, end_offset, clean.horizon_ms)

    def note(self, log: Log, manifest: Manifest) -> None:
        """The directory knows this state, whatever a leader of before has written there. DiskError.

        A log that is opened again has it.
        """
        state = LocalState(begun(manifest), log.snapshot.local_start_offset)
        local_state.save(self.env.fs, log.files.path, state)


def named_manifest(store: ObjectStore, row: PartitionRow) -> Manifest:
    """The state that the rows name; the empty one where they name none, or where the log begins
    behind it. Blocks, and asks the store.

    CorruptCheckpoint, NewerFormat, ObjectMissing, StoreError.
    """
    keys = keys_of(row)
    empty = Manifest(0, *keys, log_start_offset=row.log_start_offset)
    if row.manifest is None:
        return empty
    found = read_one(store, EpochKeys(keys, row.manifest.epoch), row.manifest.number)
    if (found.topic, found.topic_id, found.partition) != tuple(keys):
        raise CorruptCheckpoint(keys.prefix, "the manifest is another partition's")
    return found if found.end_offset > row.log_start_offset else empty


def ranges_of(manifest: Manifest, begin: int) -> list[EpochRange]:
    """Epochs of the part in the store, from `begin` on."""
    starts = [each.start_offset for each in manifest.epochs]
    ends = [*starts[1:], manifest.end_offset]
    found = [
        EpochRange(each.epoch, max(each.start_offset, begin), min(end, manifest.end_offset))
        for each, end in zip(manifest.epochs, ends, strict=True)
    ]
    return [each for each in found if each.begin < each.end]


def begun(manifest: Manifest) -> Manifest:
    """A state as the next leader begins with it."""
    return manifest._replace(number=0)


def keys_of(row: PartitionRow) -> PartitionKeys:
    """Names of the partition's objects."""
    return PartitionKeys(row.topic, row.partition.topic_id, row.partition.number)


def _place(keys: PartitionKeys) -> tuple[str, int]:
    return keys.topic, keys.partition
