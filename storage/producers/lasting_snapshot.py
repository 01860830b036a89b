"""A snapshot of the producers that outlives a power cut, where no batches are left to replay."""

from storage.env import FileSystem
from storage.errors import CorruptCheckpoint, FileMissing
from storage.files.layout import SNAPSHOT, segment_name
from storage.files.partition_listing import list_partition
from storage.producers import producer_snapshots
from storage.producers.producer_state import ProducerStates
from storage.producers.replay import replay_producers
from storage.segment.segment import Segment
from storage.segment.sync import sync_snapshot


def keep_producers(fs: FileSystem, directory: str, segments: tuple[Segment, ...], end: int) -> None:
    """The producers as of offset `end`, where `segments` end, are durable in the directory.

    Where the snapshot of that offset is absent or torn, it is made of an older one and the batches
    behind it. Blocks. DiskError.
    """
    path = f"{directory}/{segment_name(end, SNAPSHOT)}"
    if sound_snapshot(fs, path) is None:
        producer_snapshots.save(fs, directory, _producers_at(fs, directory, segments, end))
    sync_snapshot(fs, path)
    fs.sync_dir(directory)


def sound_snapshot(fs: FileSystem, path: str) -> bytes | None:
    """The snapshot's bytes; None where it is absent, or torn by a power cut. DiskError."""
    try:
        data = fs.read_bytes(path)
        producer_snapshots.decode(path, data)
    except (FileMissing, CorruptCheckpoint):
        return None
    return data


def _producers_at(
    fs: FileSystem, directory: str, segments: tuple[Segment, ...], end: int
) -> ProducerStates:
    known, states = list_partition(fs, directory).snapshots, ProducerStates()
    first = segments[0].base_offset
    producer_snapshots.load_newest(fs, directory, known, states, at_least=first, at_most=end)
    replay_producers(segments, states, end)
    return states
