"""A lease that is held as a test says."""

from math import inf


class HandLease:
    """The `Lease` of a node; held from the start."""

    def __init__(self) -> None:
        """Held."""
        self.is_held = True
        self.held_since = -inf
