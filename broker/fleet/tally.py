"""Counts of what a node does in its fleet, over all its lives. Written on the loop alone."""

from collections import Counter

from broker.runtime.probes import Histogram


class FleetTally:
    """All counts begin with the process."""

    def __init__(self) -> None:
        """Nothing happened yet."""
        self.lives = 0
        """Incarnations that began."""
        self.answers: Counter[str] = Counter()
        """Answers of the catalog to commits and checkpoints."""
        self.commits = Histogram()
        """From the begin of a commit to its answer, the put of its object with it (s)."""
        self.inline_bytes = 0
        """Bytes of commits that went into the catalog."""
        self.object_bytes = 0
        """Bytes of commits that went into the store."""
        self.checkpoints = 0
        self.loaded_partitions = 0
        """Partitions that were loaded to be led here."""
        self.given_shards = 0
        self.removed_objects = 0
        """Objects that no row named any more."""
