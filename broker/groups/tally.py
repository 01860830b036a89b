"""Counts of names: how many members say each."""

from collections import Counter
from collections.abc import Iterable


class NameTally:
    """Names that are counted; one that nobody says any more takes no memory."""

    def __init__(self) -> None:
        """No name counts."""
        self._counts: Counter[str] = Counter()

    def __len__(self) -> int:
        """Number of different names."""
        return len(self._counts)

    def __getitem__(self, name: str) -> int:
        """The number of times that a name counts."""
        return self._counts[name]

    @property
    def names(self) -> frozenset[str]:
        """All names that count."""
        return frozenset(self._counts)

    def add(self, names: Iterable[str]) -> None:
        """Each counts once more."""
        self._counts.update(names)

    def remove(self, names: Iterable[str]) -> None:
        """Each counts once less."""
        for name in names:
            self._counts[name] -= 1
            if self._counts[name] <= 0:
                del self._counts[name]

    def said_by(self, count: int) -> frozenset[str]:
        """Names that count so often."""
        return frozenset(name for name, known in self._counts.items() if known == count)

    def clear(self) -> None:
        """No name counts any more."""
        self._counts.clear()
