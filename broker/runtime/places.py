"""Names with series of their own: places given in the order of coming, kept while they live.

A name never moves from one series to another while it exists, so no counter falls.
"""

from heapq import heappop, heappush


class Places:
    """Numbers from 0 on, the smallest free one for each new name. Used on one thread."""

    def __init__(self) -> None:
        """All are free."""
        self._of: dict[str, int] = {}
        self._free: list[int] = []

    def take(self, name: str) -> int:
        """The place of a name, from now on its own."""
        place = self._of.get(name)
        if place is None:
            place = heappop(self._free) if self._free else len(self._of)
            self._of[name] = place
        return place

    def free(self, name: str) -> None:
        """The name is gone; its place is for the next that comes."""
        place = self._of.pop(name, None)
        if place is not None:
            heappush(self._free, place)
