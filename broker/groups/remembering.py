"""Groups that the broker assigns for, put together from their records, whatever their protocol."""

from collections.abc import Callable
from typing import TypeVar

R = TypeVar("R")
V = TypeVar("V")


def group_to_change(
    groups: dict[str, R], name: str, *, is_taken_back: bool, is_whole: bool, made: Callable[[], R]
) -> R | None:
    """The group that a record changes, or None when there is nothing to change.

    `is_taken_back`: the record has no value. `is_whole`: it is about the group as such, which then
    goes with all that is known of it.
    """
    if is_taken_back and is_whole:
        groups.pop(name, None)
        return None
    if is_taken_back and name not in groups:
        return None
    return groups.setdefault(name, made())


def put_part(values: dict[str, V], part: str, value: V | None) -> None:
    """Later ones win over earlier ones; one without a value takes back."""
    if value is None:
        values.pop(part, None)
    else:
        values[part] = value
