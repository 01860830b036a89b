"""Records that queues have not delivered, and for how long retention leaves them where they are.

`horolog.share.retention.hold` of a share group: from the first record on that it has not finished,
segments stay, but only for so long after the last arrival in them. Times are milliseconds.
"""

from collections.abc import Iterable
from typing import NamedTuple


class Undelivered(NamedTuple):
    """Records from an offset on, which stay for at most so long after their arrival."""

    offset: int
    most_ms: int


def stays_until(undelivered: Iterable[Undelivered], end_offset: int, arrival_ms: int) -> int | None:
    """The time until which a segment stays for queues; None when they are done with it.

    `end_offset`: that after the segment; `arrival_ms`: the last in it.
    """
    most = [each.most_ms for each in undelivered if each.offset < end_offset]
    return arrival_ms + max(most) if most else None
