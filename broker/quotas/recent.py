"""Counters of those who were active last, by their names: how many there are has an end."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Each is made when it is first asked for; the one that rested longest gives way."""

    __slots__ = ("_found", "_make", "_most")

    def __init__(self, make: Callable[[], V], most: int) -> None:
        """None yet. `most` are kept at one time."""
        self._make = make
        self._most = most
        self._found: OrderedDict[K, V] = OrderedDict()

    def of(self, name: K) -> V:
        """The one of this name."""
        found = self._found
        if name not in found:
            if len(found) >= self._most:
                found.popitem(last=False)
            found[name] = self._make()
        found.move_to_end(name)
        return found[name]
