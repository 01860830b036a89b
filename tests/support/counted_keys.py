"""Keys of mappings that count how often something is looked up by them: work without a clock."""

from typing import ClassVar
from uuid import UUID


class CountedName(str):
    """A name; `looks` counts the look-ups by all names."""

    __slots__ = ()
    looks: ClassVar[int] = 0

    def __hash__(self) -> int:
        CountedName.looks += 1
        return super().__hash__()


class CountedTopic(UUID):
    """A topic's id; `looks` counts the look-ups by all ids."""

    __slots__ = ()
    looks: ClassVar[int] = 0

    def __hash__(self) -> int:
        CountedTopic.looks += 1
        return super().__hash__()
