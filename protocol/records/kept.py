"""Result of compacting a batch, as its compiled walker returns it."""

from typing import NamedTuple


class Kept(NamedTuple):
    """Records that a pass over one batch kept; times in ms, of kept records."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which is not used
    size_bytes: int  # of the kept records, which are at the begin of `out`
    min_timestamp: int  # -1 when none has a time
    max_timestamp: int  # likewise
    untimed: int  # kept records whose time is -1
    tombstones: int  # kept records without a value
    keyless: int  # records that went because they have no key
