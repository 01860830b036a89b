"""The ordered segments of a log: finding one by offset, making the next one.

A tuple of segments is immutable; a roll or a removal makes a new tuple.
"""

from bisect import bisect_right
from operator import attrgetter

from config.topic import TopicConfig
from storage.env import Env
from storage.errors import FileMissing
from storage.files.layout import LOG, SEGMENT_SUFFIXES
from storage.files.partition_files import PartitionFiles
from storage.retention.rolling import jitter
from storage.segment.segment import IndexRules, Segment

_base_of = attrgetter("base_offset")


def index_of(segments: tuple[Segment, ...], offset: int) -> int:
    """Index of the segment of `offset`: the last one that begins at or before it, at least 0."""
    return max(bisect_right(segments, offset, key=_base_of) - 1, 0)


def create_segment(
    files: PartitionFiles,
    base_offset: int,
    config: TopicConfig,
    env: Env,
    *,
    arrival_floor_ms: int = 0,
) -> Segment:
    """Make an empty segment; left-over files of its name go first. DiskError if that fails.

    The names are durable once the directory was synced: the caller's or `durability`'s business.
    """
    for suffix in SEGMENT_SUFFIXES:
        path = files.name_of(base_offset, suffix)
        files.forget(path)
        try:
            env.fs.remove(path)
        except FileMissing:
            continue
    segment = Segment(files, base_offset, 0, env.clock.now_ms())
    segment.opened_at = env.clock.monotonic()
    segment.arrival_floor_ms = arrival_floor_ms
    segment.held = env.fs.open(segment.path_of(LOG), create=True)
    segment.indexes = segment.make_indexes(IndexRules.of(config))
    for index in segment.indexes:
        index.reset()
    segment.max_timestamp = segment.first_timestamp = -1
    segment.jitter_ms = jitter(env.rng, config.segment_jitter_ms, config.segment_ms)
    segment.name_is_durable = segment.synced = False
    segment.verified = True
    return segment
