"""To which partitions records without a key go, as with Kafka's own producers since 3.3.

Each partition in turn gets about so many bytes, in one piece, so that batches do not become small.
Every writer begins somewhere else: the tasks of a query write little each, and would otherwise all
write it to the same partition. Partitions without a leader are passed by.
"""

import secrets
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from pipeline.decode.arrays import Numbers

PIECE_BYTES = 16 * 1024
"""The `batch.size` of Kafka's producers."""
_BEGINS = 1 << 31


class Turns:
    """Next partition of each topic, in turns. For one writer."""

    def __init__(self, begin: Callable[[int], int] = secrets.randbelow) -> None:
        """`begin`: a number below the one given, by which the first partition is chosen."""
        self._first: dict[str, int] = defaultdict(lambda: begin(_BEGINS))
        self._sent_bytes: dict[str, int] = defaultdict(int)

    def partitions(self, topic: str, leaders: Sequence[str], sizes: Numbers) -> Numbers:
        """The partition of each record; `sizes` of the records in bytes, in their order."""
        choices = np.flatnonzero([bool(each) for each in leaders])
        if not len(choices):
            choices = np.arange(len(leaders))
        ends = self._sent_bytes[topic] + np.cumsum(sizes)
        if len(ends):
            self._sent_bytes[topic] = int(ends[-1])
        turns = self._first[topic] + (ends - sizes) // PIECE_BYTES
        return np.asarray(choices[turns % len(choices)], np.int64)
