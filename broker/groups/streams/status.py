"""Statuses of a streams group: what its members have to know besides their tasks (KIP-1071)."""

from enum import IntEnum


class Status(IntEnum):
    """Kinds of statuses; the numbers are the wire's."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class Obstacle(Exception):  # noqa: N818 - it is a state of the topics, not a fault
    """Topics are not as a topology needs them: no task can be assigned."""

    def __init__(self, status: Status, text: str) -> None:
        """`text` says which topics."""
        super().__init__(text)
        self.status = status
        self.text = text
