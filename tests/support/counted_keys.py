"""Keys of mappings that count how often something is looked up by them: work without a clock."""

from typing import ClassVar
from uuid import UUID


class _Counted:
    """Key of a class whose `looks` counts the look-ups by all keys of that class."""

    __slots__ = ()
    looks: ClassVar[int] = 0

    def __hash__(self) -> int:
        type(self).looks += 1
        return super().__hash__()


class CountedName(_Counted, str):
    """Name that is counted."""

    __slots__ = ()


class CountedTopic(_Counted, UUID):
    """Id of a topic that is counted."""

    __slots__ = ()
