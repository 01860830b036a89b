"""Cuts what is asked of a partition into ranges of offsets for Fetch.

The broker's search by time bounds them from below. From above nothing does: older records may
follow newer ones, and the decoder leaves out what is not wanted.
"""

from pipeline.decode.decoder import Selection
from pipeline.sources.bounds import OffsetBounds, Range
from pipeline.sources.broker_views import first_offset_by_time
from pipeline.sources.chunks import WireChunk
from pipeline.sources.options import ReadOptions
from pipeline.sources.partition_view import PartitionView

USUAL_RECORD_BYTES = 200
"""Assumed where the broker does not say how large a log is."""


def wire_chunks(
    options: ReadOptions, view: PartitionView, bounds: OffsetBounds, most_bytes: int
) -> list[WireChunk]:
    """The chunks of a partition, in the order of offsets, of about `most_bytes` each."""
    offsets = bounds.offsets.within(Range(view.start_offset, view.end_offset - 1))
    if offsets.low > offsets.high or not bounds.takes(view.topic, view.partition):
        return []
    if bounds.times.low > 0:
        offsets = offsets.within(Range(low=first_offset_by_time(view, bounds.times.low, options)))
    record_bytes = max(1, view.size_bytes // max(1, view.end_offset - view.start_offset))
    if not view.size_bytes:
        record_bytes = USUAL_RECORD_BYTES
    step = max(1, most_bytes // record_bytes)
    chunks = []
    for first in range(offsets.low, offsets.high + 1, step):
        last = min(first + step - 1, offsets.high)
        chunks.append(
            WireChunk(
                view,
                view.leader,
                Selection(first, last, *bounds.times),
                options.is_committed,
                (last - first + 1) * record_bytes,
                options.fails_on_loss,
                options.security,
                options.bootstrap,
            )
        )
    return chunks
