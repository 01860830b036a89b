"""A lease that is valid when a test says so."""

from math import inf


class HandLease:
    """The `Lease` of a node; valid from the start."""

    def __init__(self) -> None:
        """Valid."""
        self.is_held = True
        self.has_room = True
        self.held_since = -inf
