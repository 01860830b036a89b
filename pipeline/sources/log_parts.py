"""Parts of a partition beside a running broker: from files, from the tier's store, over the wire.

The broker says up to where may be read. It is asked for bytes only where nobody else has them: for
what is not in the store yet when its directory is not on this machine, and for what only the store
has when nobody says where that is.
"""

from typing import NamedTuple

from pipeline.directories.log_files import FILES
from pipeline.directories.tier_files import TierFiles
from pipeline.sources.bounds import Range
from pipeline.sources.log_ends import last_stable_offset
from pipeline.sources.options import FILES as FILES_ALONE
from pipeline.sources.options import ReadOptions
from pipeline.sources.partition_view import PartitionView
from pipeline.sources.tier_parts import files_of, path_of
from storage.files.layout import REMOTE_FILE
from storage.files.partition_listing import look_at


class LogPart(NamedTuple):
    """Offsets of a partition that are read in one way."""

    view: PartitionView
    offsets: Range
    is_wire: bool


def parts_of(options: ReadOptions, view: PartitionView, wanted: Range) -> list[LogPart]:
    """The parts of a partition of which a broker was asked, in order. DamagedLog, DiskError."""
    if view.directory is None and view.tier is None:
        return [LogPart(view, wanted, is_wire=True)]
    if view.directory is None:
        end = _end_in_store(view, is_committed=options.is_committed)
        return [
            LogPart(view, Range(high=end - 1), is_wire=False),
            LogPart(view, Range(low=end), is_wire=True),
        ]
    begin = _begin_here(options, view, view.directory)
    if wanted.low >= begin:
        return [LogPart(view, wanted, is_wire=False)]
    return [
        LogPart(view, Range(high=begin - 1), is_wire=True),
        LogPart(view, Range(low=begin), is_wire=False),
    ]


def _end_in_store(view: PartitionView, *, is_committed: bool) -> int:
    """The offset up to which the store alone tells what a reader may see."""
    files = files_of(view, is_fresh=True)
    if not isinstance(files, TierFiles):
        return view.start_offset
    end = min(files.stored_end_offset, view.end_offset)
    return last_stable_offset(path_of(view), end, files) if is_committed else end


def _begin_here(options: ReadOptions, view: PartitionView, directory: str) -> int:
    """The first offset that files have; what is before it left for a store that is not named."""
    if view.tier is not None or options.mode == FILES_ALONE:
        return view.start_offset
    listing = look_at(FILES, directory)
    if REMOTE_FILE not in listing.others:
        return view.start_offset
    return listing.bases[0] if listing.logs else view.end_offset
