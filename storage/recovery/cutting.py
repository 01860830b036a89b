"""Takes the end off a log that is closed: what its leader wrote and nobody committed.

As Kafka's `truncateTo`. The highest goes first, so that a crash in between leaves no hole; a start
recovers what is left.
"""

from collections.abc import Sequence

from storage.errors import CorruptLog, FileMissing
from storage.files.layout import LEADER_EPOCHS_FILE, SYNCED_MARK
from storage.files.partition_files import PartitionFiles
from storage.producers.leader_epochs import LeaderEpochs
from storage.recovery.log_recovery import remove_segment
from storage.scan.batch_walk import find_offset
from storage.segment.segment import Segment


def cut_from(files: PartitionFiles, segments: Sequence[Segment], end_offset: int) -> None:
    """Takes off batches from `end_offset` on, durably; the first segment stays, perhaps empty.

    CorruptLog when no batch begins there; DiskError: the rest goes with another call.
    """
    _forget_mark(files)
    for segment in reversed(segments[1:]):
        if segment.base_offset < end_offset:
            break
        remove_segment(files.fs, segment)
    else:
        segment = segments[0]
    _shorten(segment, end_offset)
    files.fs.sync_dir(files.path)
    _end_epochs(files, end_offset)


def _end_epochs(files: PartitionFiles, end_offset: int) -> None:
    """Forgets epochs that began there: the next leader has its own, whatever recovery announced."""
    epochs = LeaderEpochs(files.fs, f"{files.path}/{LEADER_EPOCHS_FILE}")
    epochs.load()
    if epochs.truncate_to(end_offset):
        epochs.save()


def _shorten(segment: Segment, end_offset: int) -> None:
    file = segment.file()
    place = find_offset(file, 0, segment.size_bytes, end_offset)
    if place is None:
        return
    if place.base_offset < end_offset:
        raise CorruptLog(file.path, f"offset {end_offset} is within a batch at {place.position}")
    file.truncate(place.position)
    file.sync()


def _forget_mark(files: PartitionFiles) -> None:
    """Removes what vouches for the end that goes: what comes at its offsets is not on the disk."""
    path = f"{files.path}/{SYNCED_MARK}"
    files.forget(path)
    try:
        files.fs.remove(path)
    except FileMissing:
        return
    files.fs.sync_dir(files.path)
